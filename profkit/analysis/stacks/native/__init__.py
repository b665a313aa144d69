"""What the text of C, C++ and Rust says about a line, a loop or a function."""
