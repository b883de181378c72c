//! The probe's calls of `memcpy` and kin must reach its own definitions, not libc's: see
//! `src/libc_free.rs`.

fn main() {
    println!("cargo:rustc-cdylib-link-arg=-Wl,-Bsymbolic");
    println!("cargo:rerun-if-changed=build.rs");
}
