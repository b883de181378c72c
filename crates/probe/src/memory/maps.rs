//! What is mapped in this process, as the kernel says.

use raddle_schedule::told::Line;

/// All of it.
pub fn mappings() -> Vec<Line> {
    let text = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    text.lines().filter_map(Line::parse).collect()
}
