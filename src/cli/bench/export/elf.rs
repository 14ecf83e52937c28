//! Sizes of the sections of an object file.

/// Returns the bytes of instructions and of constants in a 64-bit little-endian ELF file (System V ABI,
/// chapter 4), or `None` for any other file.
pub fn sizes(file: &[u8]) -> Option<[usize; 2]> {
    const CODE: u64 = 4;
    const IN_MEMORY: u64 = 2;
    const WRITABLE: u64 = 1;
    const CONTENT: u32 = 1;
    if !file.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let table = usize::try_from(u64_at(file, 40)?).ok()?;
    let [size, count] = [58, 60].map(|at| Some(usize::from(u16_at(file, at)?)));
    let (size, count) = (size?, count?);
    let mut sizes = [0, 0];
    for section in 0..count {
        let header = table + section * size;
        let kind = u32::from_le_bytes(file.get(header + 4..header + 8)?.try_into().ok()?);
        let flags = u64_at(file, header + 8)?;
        let bytes = usize::try_from(u64_at(file, header + 32)?).ok()?;
        if kind == CONTENT && flags & CODE != 0 {
            sizes[0] += bytes;
        } else if kind == CONTENT && flags & (IN_MEMORY | WRITABLE) == IN_MEMORY {
            sizes[1] += bytes;
        }
    }
    Some(sizes)
}

fn u16_at(file: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(file.get(at..at + 2)?.try_into().ok()?))
}

fn u64_at(file: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(file.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::sizes;

    #[test]
    fn this_very_program_has_code_and_constants() {
        let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        if cfg!(all(
            target_os = "linux",
            target_endian = "little",
            target_pointer_width = "64"
        )) {
            let [code, constants] = sizes(&program).unwrap();
            assert!(code > 100_000 && constants > 10_000, "{code} {constants}");
        }
        assert_eq!(sizes(b"no program"), None);
        assert_eq!(sizes(&program[..100.min(program.len())]), None);
    }
}
