//! Classic BPF (McCanne and Jacobson 1993; `bpf(4)` of the BSDs) on frames of a file.
//!
//! Programs come from libpcap, which runs in another process; a program is checked here all the same
//! before it runs. Jumps go only forward and the last instruction returns, so each run ends.

use super::{Frame, FrameSink};
use crate::model::filter::{FrameFilter, Instruction};
use crate::model::place::InputId;

/// Words of scratch memory.
const SCRATCH: usize = 16;
/// Most instructions of a program (`BPF_MAXINSNS` of libpcap is unlimited, of kernels 4096).
const INSTRUCTIONS: usize = 65_536;

/// Instruction classes and fields.
mod op {
    pub(super) const LD: u16 = 0x00;
    pub(super) const LDX: u16 = 0x01;
    pub(super) const ST: u16 = 0x02;
    pub(super) const STX: u16 = 0x03;
    pub(super) const ALU: u16 = 0x04;
    pub(super) const JMP: u16 = 0x05;
    pub(super) const RET: u16 = 0x06;
    pub(super) const MISC: u16 = 0x07;
    pub(super) const IMM: u16 = 0x00;
    pub(super) const ABS: u16 = 0x20;
    pub(super) const IND: u16 = 0x40;
    pub(super) const MEM: u16 = 0x60;
    pub(super) const LEN: u16 = 0x80;
    pub(super) const MSH: u16 = 0xa0;
}

/// A program that was checked.
#[derive(Clone, Debug)]
pub struct Program(Vec<Instruction>);

/// Why a program is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ProgramError {
    /// It is empty or too long, or runs over its end.
    #[error("it does not end in a return, or has more than {INSTRUCTIONS} instructions")]
    Unending,
    /// A jump leads out of it.
    #[error("instruction {0} leads out of it")]
    Jump(usize),
    /// An instruction that does not exist, or divides by zero or shifts too far, or an index beyond the
    /// scratch memory.
    #[error("instruction {0} does not exist")]
    Instruction(usize),
}

impl Program {
    /// Checks a program.
    ///
    /// # Errors
    /// Where it is not one that ends for every packet.
    pub fn new(instructions: Vec<Instruction>) -> Result<Program, ProgramError> {
        let length = instructions.len();
        let ends = instructions.last().is_some_and(|i| i.code & 7 == op::RET);
        if !ends || length > INSTRUCTIONS {
            return Err(ProgramError::Unending);
        }
        for (at, i) in instructions.iter().enumerate() {
            let left = length - at - 1;
            if i.code & 7 == op::JMP {
                let leads_out = match i.code {
                    0x05 => i.k as usize >= left,
                    _ => usize::from(i.jt) >= left || usize::from(i.jf) >= left,
                };
                if leads_out {
                    return Err(ProgramError::Jump(at));
                }
            }
            if !exists(i) {
                return Err(ProgramError::Instruction(at));
            }
        }
        Ok(Program(instructions))
    }

    /// Does it accept a packet of which these bytes were captured, and which was `wire_len` long?
    pub fn accepts(&self, packet: &[u8], wire_len: u32) -> bool {
        self.run(packet, wire_len).is_some_and(|n| n > 0)
    }

    /// What it returns; none where it reads beyond the packet or divides by zero, which refuses it.
    fn run(&self, packet: &[u8], wire_len: u32) -> Option<u32> {
        let (mut a, mut x) = (0_u32, 0_u32);
        let mut scratch = [0_u32; SCRATCH];
        let mut at = 0;
        loop {
            let i = self.0.get(at)?;
            at += 1;
            match i.code & 7 {
                op::LD => {
                    a = match i.code & 0xe0 {
                        op::IMM => i.k,
                        op::ABS => load(packet, i.k, i.code)?,
                        op::IND => load(packet, x.checked_add(i.k)?, i.code)?,
                        op::MEM => *scratch.get(i.k as usize)?,
                        _ => wire_len,
                    };
                }
                op::LDX => {
                    x = match i.code & 0xe0 {
                        op::IMM => i.k,
                        op::MEM => *scratch.get(i.k as usize)?,
                        op::LEN => wire_len,
                        _ => (u32::from(*packet.get(i.k as usize)?) & 0xf) << 2,
                    };
                }
                op::ST => *scratch.get_mut(i.k as usize)? = a,
                op::STX => *scratch.get_mut(i.k as usize)? = x,
                op::ALU => a = alu(i.code & 0xf0, a, if i.code & 8 == 0 { i.k } else { x })?,
                op::JMP if i.code == 0x05 => at += i.k as usize,
                op::JMP => {
                    let operand = if i.code & 8 == 0 { i.k } else { x };
                    let holds = match i.code & 0xf0 {
                        0x10 => a == operand,
                        0x20 => a > operand,
                        0x30 => a >= operand,
                        _ => a & operand != 0,
                    };
                    at += usize::from(if holds { i.jt } else { i.jf });
                }
                op::RET => return Some(if i.code & 0x18 == 0x10 { a } else { i.k }),
                _ if i.code & 0xf8 == 0 => x = a,
                _ => a = x,
            }
        }
    }
}

fn exists(i: &Instruction) -> bool {
    let in_scratch = (i.k as usize) < SCRATCH;
    match i.code & 7 {
        op::LD => match i.code & 0xe0 {
            op::IMM | op::LEN => i.code & 0x18 == 0,
            op::MEM => i.code & 0x18 == 0 && in_scratch,
            op::ABS | op::IND => i.code & 0x18 != 0x18,
            _ => false,
        },
        op::LDX => match i.code & 0xf8 {
            op::IMM | op::LEN => true,
            op::MEM => in_scratch,
            // The header length of IPv4, of one byte.
            code => code == op::MSH | 0x10,
        },
        op::ST | op::STX => i.code & 0xf8 == 0 && in_scratch,
        op::ALU => match i.code & 0xf0 {
            0x30 | 0x90 if i.code & 8 == 0 => i.k != 0,
            0x60 | 0x70 if i.code & 8 == 0 => i.k < 32,
            0x80 => i.code & 8 == 0,
            operation => operation <= 0xa0,
        },
        op::JMP => i.code == 0x05 || matches!(i.code & 0xf0, 0x10 | 0x20 | 0x30 | 0x40),
        op::RET => matches!(i.code & 0xf8, 0x00 | 0x10),
        op::MISC => matches!(i.code & 0xf8, 0x00 | 0x80),
        _ => false,
    }
}

/// A word, half word or byte in network order.
fn load(packet: &[u8], at: u32, code: u16) -> Option<u32> {
    let bytes = packet.get(at as usize..)?;
    match (code & 0x18, bytes) {
        (0x00, [a, b, c, d, ..]) => Some(u32::from_be_bytes([*a, *b, *c, *d])),
        (0x08, [a, b, ..]) => Some(u32::from(u16::from_be_bytes([*a, *b]))),
        (0x10, [a, ..]) => Some(u32::from(*a)),
        _ => None,
    }
}

fn alu(operation: u16, a: u32, b: u32) -> Option<u32> {
    Some(match operation {
        0x00 => a.wrapping_add(b),
        0x10 => a.wrapping_sub(b),
        0x20 => a.wrapping_mul(b),
        0x30 => a.checked_div(b)?,
        0x40 => a | b,
        0x50 => a & b,
        0x60 => a.checked_shl(b).unwrap_or(0),
        0x70 => a.checked_shr(b).unwrap_or(0),
        0x80 => a.wrapping_neg(),
        0x90 => a.checked_rem(b)?,
        _ => a ^ b,
    })
}

/// A filter whose programs were checked.
#[derive(Clone, Debug)]
pub struct Filter(Vec<(u16, Program)>);

impl Filter {
    /// Of a filter as compiled; a program that is none accepts nothing.
    pub fn new(filter: &FrameFilter) -> Filter {
        let checked = |(link, program): &(u16, Vec<Instruction>)| Some((*link, Program::new(program.clone()).ok()?));
        Filter(filter.programs.iter().filter_map(checked).collect())
    }

    /// Does it accept this frame? Of a link type that it cannot be said for, none.
    pub fn accepts(&self, frame: &Frame<'_>) -> bool {
        let program = self.0.iter().find(|(link, _)| *link == frame.link_type);
        program.is_some_and(|(_, p)| p.accepts(frame.data, frame.wire_len))
    }
}

/// Passes on the frames that a filter accepts.
pub struct Filtered<'a> {
    filter: Option<Filter>,
    inner: &'a mut dyn FrameSink,
}

impl<'a> Filtered<'a> {
    /// Without a filter all frames pass.
    pub fn new(filter: Option<&FrameFilter>, inner: &'a mut dyn FrameSink) -> Filtered<'a> {
        Filtered { filter: filter.map(Filter::new), inner }
    }
}

impl FrameSink for Filtered<'_> {
    fn frame(&mut self, frame: &Frame<'_>) {
        if self.filter.as_ref().is_none_or(|f| f.accepts(frame)) {
            self.inner.frame(frame);
        }
    }

    fn secrets(&mut self, input: InputId, key_log: &[u8]) {
        self.inner.secrets(input, key_log);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::net::SocketAddr;

    fn parse(text: &str) -> Program {
        let line = |l: &str| {
            let n: Vec<u32> = l.split_whitespace().map(|n| n.parse().unwrap()).collect();
            Instruction { code: n[0] as u16, jt: n[1] as u8, jf: n[2] as u8, k: n[3] }
        };
        Program::new(text.lines().map(line).collect()).unwrap()
    }

    /// `tcp port 9311` on Ethernet, as `tcpdump -ddd` prints it.
    const PORT: &str = "40 0 0 12\n21 0 6 34525\n48 0 0 20\n21 0 15 6\n40 0 0 54\n21 12 0 9311\n40 0 0 56\n21 10 11 9311\n\
                        21 0 10 2048\n48 0 0 23\n21 0 8 6\n40 0 0 20\n69 6 0 8191\n177 0 0 14\n72 0 0 14\n21 2 0 9311\n\
                        72 0 0 16\n21 0 1 9311\n6 0 0 262144\n6 0 0 0";

    /// Ethernet, IP without options, and the ports of TCP with some bytes after them.
    fn ethernet(from: &str, to: &str) -> Vec<u8> {
        let (from, to): (SocketAddr, SocketAddr) = (from.parse().unwrap(), to.parse().unwrap());
        let mut frame = vec![0; 12];
        if from.is_ipv4() {
            frame.extend([8, 0, 0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6]);
            frame.extend([0; 10]);
        } else {
            frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 20, 6, 64]);
            frame.extend([0; 32]);
        }
        frame.extend(from.port().to_be_bytes());
        frame.extend(to.port().to_be_bytes());
        frame.extend([0; 16]);
        frame
    }

    #[test]
    fn a_port() {
        let program = parse(PORT);
        let accepts = |from, to| program.accepts(&ethernet(from, to), 60);
        assert!(accepts("10.0.0.1:9311", "10.0.0.2:50000") && accepts("10.0.0.1:50000", "10.0.0.2:9311"));
        assert!(accepts("[::1]:9311", "[::2]:50000") && accepts("[::1]:50000", "[::2]:9311"));
        assert!(!accepts("10.0.0.1:9312", "10.0.0.2:50000") && !accepts("[::1]:9312", "[::2]:50000"));
        // What is cut before the ports cannot be told, and is refused as the kernel would.
        assert!(!program.accepts(&ethernet("10.0.0.1:9311", "10.0.0.2:50000")[..34], 60));
        assert!(!program.accepts(&[], 60));
    }

    #[test]
    fn what_is_no_program() {
        let i = |code, jt, jf, k| Instruction { code, jt, jf, k };
        let ret = i(6, 0, 0, 1);
        let error = |program: &[Instruction]| Program::new(program.to_vec()).err();
        assert_eq!(error(&[]), Some(ProgramError::Unending));
        assert_eq!(error(&[i(0, 0, 0, 1)]), Some(ProgramError::Unending));
        assert_eq!(error(&[i(0x15, 0, 1, 0), ret]), Some(ProgramError::Jump(0)));
        assert_eq!(error(&[i(0x05, 0, 0, u32::MAX), ret]), Some(ProgramError::Jump(0)));
        for bad in [i(0x34, 0, 0, 0), i(0x02, 0, 0, 16), i(0x64, 0, 0, 32), i(0xff, 0, 0, 0), i(0x38, 0, 0, 0)] {
            assert_eq!(error(&[bad, ret]), Some(ProgramError::Instruction(0)), "{bad:?}");
        }
        assert!(Program::new(vec![i(0x15, 0, 0, 0), ret]).is_ok());
    }

    #[test]
    fn arithmetic() {
        let i = |code, k| Instruction { code, jt: 0, jf: 0, k };
        let run = |code, a, k| Program::new(vec![i(0, a), i(code, k), i(0x16, 0)]).unwrap().run(&[], 0);
        for (code, expected) in
            [(0x04, 17), (0x14, 7), (0x24, 60), (0x34, 2), (0x44, 13), (0x54, 4), (0x94, 2), (0xa4, 9)]
        {
            assert_eq!(run(code, 12, 5), Some(expected), "{code:#x}");
        }
        assert_eq!((run(0x64, 1, 4), run(0x74, 16, 4), run(0x84, 1, 0)), (Some(16), Some(1), Some(u32::MAX)));
        // By the index, which is zero: a division refuses the packet.
        assert_eq!((run(0x3c, 1, 0), run(0x9c, 1, 0), run(0x0c, 1, 0)), (None, None, Some(1)));
        assert_eq!(Program::new(vec![i(0x80, 0), i(0x16, 0)]).unwrap().run(&[], 77), Some(77));
    }

    fn instruction() -> impl Strategy<Value = Instruction> {
        let code =
            prop_oneof![0_u16..256, prop::sample::select(vec![0x20_u16, 0x28, 0x30, 0x48, 0x15, 0x45, 0x06, 0xb1])];
        (code, 0_u8..4, 0_u8..4, prop_oneof![0_u32..80, any::<u32>()]).prop_map(|(code, jt, jf, k)| Instruction {
            code,
            jt,
            jf,
            k,
        })
    }

    proptest! {
        /// Whatever passes the check runs to its end on any packet.
        #[test]
        fn every_program_ends(
            mut program in prop::collection::vec(instruction(), 0..40),
            packet in prop::collection::vec(any::<u8>(), 0..80),
        ) {
            program.push(Instruction { code: 6, jt: 0, jf: 0, k: 1 });
            // Those that cannot pass are left out one by one, so that long programs are tried too.
            loop {
                match Program::new(program.clone()) {
                    Ok(p) => { p.accepts(&packet, 80); break }
                    Err(ProgramError::Jump(at) | ProgramError::Instruction(at)) => { program.remove(at); }
                    Err(ProgramError::Unending) => prop_assert!(false),
                }
            }
        }

        /// On packets of any ports the program says what its expression says.
        #[test]
        fn a_port_in_any_packet(from in 1_u16.., to in 1_u16.., is_v6: bool, hit: Option<bool>) {
            let (from, to) = match hit { Some(true) => (9311, to), Some(false) => (from, 9311), None => (from, to) };
            let ip = if is_v6 { "[2001:db8::1]" } else { "192.0.2.1" };
            let frame = ethernet(&format!("{ip}:{from}"), &format!("{ip}:{to}"));
            prop_assert_eq!(parse(PORT).accepts(&frame, 60), from == 9311 || to == 9311);
        }
    }
}
