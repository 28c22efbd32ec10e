//! From a check message along the jumps to its value, and back to the comparison that leads to it.

use super::code::Code;
use super::decode::{Callee, Condition, Decoder, Flow};
use super::message::{self, CheckKind, CheckValue, Found};
use super::sweep::{Branch, Mention, Sweep};
use crate::limits;
use crate::model::{DType, DeviceKind};

/// The value that is printed after a message, or why it was not found.
///
/// Address order would pair the wrong texts: compilers merge the common tails of error blocks and put a
/// jump in front of them.
pub(super) fn value_of(code: &Code<'_>, mention: &Mention) -> Result<CheckValue, &'static str> {
    let mut registers = mention.registers;
    let mut address = mention.next;
    let mut steps = 0;
    'part: loop {
        let Some(part) = code.part(address) else { return Err("control leaves the code") };
        let mut decoder = Decoder::new(code.processor, part.bytes, part.address, address);
        while let Some(step) = decoder.step(&mut registers) {
            steps += 1;
            if steps > limits::CHECK_STEPS {
                return Err("no value follows its message");
            }
            if let Some(formed) = step.forms.filter(|formed| *formed != mention.text) {
                match message::parse_value(mention.kind, code.text(formed)) {
                    Some(Found::Value(value)) => return Ok(value),
                    Some(Found::End) => return Err("its message ends without a value"),
                    None => {}
                }
            }
            match step.flow {
                Flow::Next | Flow::Branch { .. } | Flow::Call(_) => {}
                Flow::Jump(target) => {
                    address = target;
                    continue 'part;
                }
                Flow::Stop => return Err("control leaves before a value"),
            }
        }
        return Err("the code ends before a value");
    }
}

/// What the comparison in front of the error block asks for. `None` where it is not an immediate, or the
/// ways into the block disagree. `callee` names a called function.
pub(super) fn compared<'n>(
    sweep: &Sweep,
    mention: &Mention,
    callee: &dyn Fn(Callee) -> Option<&'n str>,
) -> Option<CheckValue> {
    // the block begins at the last jump target of the run that the message stands in
    let until = sweep.branches.partition_point(|branch| branch.target <= mention.at);
    let from = sweep.branches.partition_point(|branch| branch.target < mention.run);
    let inside = sweep.branches.get(from..until).unwrap_or_default();
    let start = inside.last().map_or(mention.run, |branch| branch.target);
    let jumps = inside.iter().filter(|branch| branch.target == start);
    let mut ways: Vec<CheckValue> = jumps.filter_map(|b| asked(mention.kind, b, b.condition, callee)).collect();
    if let Some(branch) = mention.fallen_from.filter(|_| start == mention.run) {
        ways.extend(asked(mention.kind, &branch, branch.condition.inverse(), callee));
    }
    let first = ways.first()?.clone();
    ways.iter().all(|way| *way == first).then_some(first)
}

/// The value for which `condition` leads to the error.
fn asked<'n>(
    kind: CheckKind,
    branch: &Branch,
    condition: Condition,
    callee: &dyn Fn(Callee) -> Option<&'n str>,
) -> Option<CheckValue> {
    let number = branch.compares;
    match (kind, condition) {
        (CheckKind::Static { .. } | CheckKind::Stride { .. }, Condition::NotEqual) => number.map(CheckValue::Number),
        (CheckKind::Lower { .. }, Condition::Less) => number.map(CheckValue::Number),
        (CheckKind::Lower { .. }, Condition::LessEqual) => number?.checked_add(1).map(CheckValue::Number),
        (CheckKind::Upper { .. }, Condition::Greater) => number.map(CheckValue::Number),
        (CheckKind::Upper { .. }, Condition::GreaterEqual) => number?.checked_sub(1).map(CheckValue::Number),
        (CheckKind::Device, Condition::NotEqual) => {
            DeviceKind::from_aten(i32::try_from(number?).ok()?).map(CheckValue::Device)
        }
        (CheckKind::Dtype, Condition::NotEqual) => {
            let name = callee(branch.callee?)?;
            DType::from_name(name.strip_prefix("aoti_torch_dtype_")?).map(CheckValue::Dtype)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::code::Part;
    use super::super::decode::{Processor, Registers};
    use super::*;

    #[test]
    fn the_way_to_a_value_has_a_border() {
        let of = |steps: usize| {
            // nop, and ret at the end
            let bytes = [vec![0x90; steps - 1], vec![0xc3]].concat();
            let part = Part { address: 0x1000, bytes: &bytes };
            let code = Code::of(Processor::X86_64, part, Part { address: 0x10_0000, bytes: b"\0" });
            let mention = Mention {
                input: 0,
                kind: CheckKind::Dtype,
                text: 0,
                at: 0x1000,
                next: 0x1000,
                run: 0x1000,
                fallen_from: None,
                registers: Registers::default(),
            };
            value_of(&code, &mention).unwrap_err()
        };
        assert_eq!(of(limits::CHECK_STEPS), "control leaves before a value");
        assert_eq!(of(limits::CHECK_STEPS + 1), "no value follows its message");
    }
}
