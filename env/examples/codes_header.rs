//! Prints `dataplane/ndt_codes.h`.

fn main() {
    print!("{}", bufgym_env::control::codes_header());
}
