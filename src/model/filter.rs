//! A capture filter as the user wrote it and as compiled: classic BPF programs as plain data.

/// One instruction of a classic BPF program (`struct bpf_insn`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Instruction {
    /// What to do.
    pub code: u16,
    /// Instructions to pass over where a test holds.
    pub jt: u8,
    /// Instructions to pass over where it does not.
    pub jf: u8,
    /// Operand.
    pub k: u32,
}

/// `--filter BPF`: which frames are looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameFilter {
    /// The expression as given.
    pub expression: String,
    /// The program for each link type that the expression could be compiled for.
    pub programs: Vec<(u16, Vec<Instruction>)>,
}
