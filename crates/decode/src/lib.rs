//! What one machine instruction does to memory. Pure: bytes in, accesses out.
