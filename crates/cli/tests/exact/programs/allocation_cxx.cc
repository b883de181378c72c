// Operators new and delete, which are built on malloc and free: counted once.
//
// watch: memory
// options: --place *
// build: g++ -O0 -g -std=c++17

#include <new>

struct alignas(64) Wide {
    char bytes[192];
};

int main()
{
    int *one = new int(1);              // expect: allocate 4; write 4 block(4)
    delete one;                         // expect: free block(4)
    char *many = new char[100];         // expect: allocate 100
    delete[] many;                      // expect: free block(100)
    Wide *wide = new Wide;              // expect: allocate 192
    delete wide;                        // expect: free block(192)
    one = new (std::nothrow) int;       // expect: allocate 4
    delete one;                         // expect: free block(4)
    Wide *wides = new Wide[2];          // expect: allocate 384
    delete[] wides;                     // expect: free block(384)
    void *raw = ::operator new(33);     // expect: allocate 33
    ::operator delete(raw, 33);         // expect: free block(33)
    return 0;
}
