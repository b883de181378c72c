//! Links the engine's extensions statically: one library fewer to find and load in every target.
//! dynamorio-sys says where they are and names the shared ones; the linker drops those as unneeded.

fn main() {
    for library in ["drreg_static", "drmgr_static", "drcontainers"] {
        println!("cargo:rustc-link-lib=static:-bundle={library}");
    }
    println!("cargo:rerun-if-changed=build.rs");
}
