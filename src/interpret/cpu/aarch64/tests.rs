//! Short programs, as llvm-mc encodes them, against results worked out by hand.

use super::Aarch64;
use crate::interpret::cpu::{Bus, Event, Processor};
use crate::interpret::memory::Mapping;
use crate::interpret::value::{Origin, Property, Relation, Value};
use crate::source::Region;

const CODE: u64 = 0x1000_0000;
const STACK: u64 = 0x7000_0000;
const BACK: u64 = 0x6666_0000;

/// Runs words (bytes in file order) with the given first arguments until they return or ask the machine.
fn run<T>(
    words: &[u32],
    prepare: impl FnOnce(&mut Aarch64, &mut Bus<'_>),
    then: impl FnOnce(&mut Aarch64, &mut Bus<'_>, Event) -> T,
) -> T {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    let mut bus = Bus::new(1_000);
    let memory_size = bytes.len() as u64;
    bus.memory.map(Mapping { address: CODE, memory_size, bytes: Region::whole(&bytes), is_executable: true });
    let mut cpu = Aarch64::new();
    cpu.set_stack_pointer(STACK);
    prepare(&mut cpu, &mut bus);
    cpu.enter(&mut bus, CODE, BACK);
    let event = cpu.run(&mut bus);
    then(&mut cpu, &mut bus, event)
}

fn registers(words: &[u32], wanted: &[(usize, u64)]) {
    run(
        words,
        |_, _| {},
        |cpu, bus, event| {
            assert_eq!(event, Event::Outside(BACK));
            assert!(bus.frames.is_empty());
            for (register, value) in wanted {
                assert_eq!(cpu.general(*register, 8).bits, *value, "x{register}");
            }
        },
    );
}

#[test]
fn integers() {
    // mov x0,#0x1234; movk x0,#0xabcd,lsl #16; mov x1,#-3; add x2,x0,x1,lsl #4; sub w3,w0,#1,lsl #12;
    // ubfx x4,x0,#4,#12; sbfiz x5,x1,#3,#32; and x6,x0,#0xff00ff00ff00ff; orr w7,wzr,#0x7ffffffe; mov x9,#100;
    // mov x10,#7; udiv x11,x9,x10; msub x12,x11,x10,x9; sdiv x13,x1,x10; clz x14,x0; rev w15,w0; cmp x9,x10;
    // cset x16,hi; csinc x17,x9,x10,lt; cneg x18,x1,lt; ror x19,x0,#8; bfi x19,x9,#60,#4; umulh x20,x1,x1;
    // smulh x21,x1,x9; smaddl x22,w1,w9,x10; sxtw x23,w1; asr x24,x1,#1; lsr w25,w1,#1; bic x26,x0,x9;
    // mvn x27,x9; adds x28,x1,#3; cset x8,eq; ret
    let words = [
        0x804682d2, 0xa079b5f2, 0x41008092, 0x0210018b, 0x03044051, 0x043c44d3, 0x257c7d93, 0x069c0092, 0xe7771f32,
        0x890c80d2, 0xea0080d2, 0x2b09ca9a, 0x6ca50a9b, 0x2d0cca9a, 0x0e10c0da, 0x0f08c05a, 0x3f010aeb, 0xf0979f9a,
        0x31b58a9a, 0x32a481da, 0x1320c093, 0x330d44b3, 0x347cc19b, 0x357c499b, 0x3628299b, 0x377c4093, 0x38fc4193,
        0x397c0153, 0x1a00298a, 0xfb0329aa, 0x3c0c00b1, 0xe8179f9a, 0xc0035fd6,
    ];
    let minus = |n: i64| n as u64;
    registers(
        &words,
        &[
            (0, 0xabcd_1234),
            (2, 0xabcd_1234 - 48),
            (3, 0xabcd_0234),
            (4, 0x123),
            (5, minus(-24)),
            (6, 0xcd_0034),
            (7, 0x7fff_fffe),
            (11, 14),
            (12, 2),
            (13, 0),
            (14, 32),
            (15, 0x3412_cdab),
            (16, 1),
            (17, 8),
            (18, minus(-3)),
            (19, 0x4400_0000_00ab_cd12),
            (20, minus(-6)),
            (21, minus(-1)),
            (22, minus(-293)),
            (23, minus(-3)),
            (24, minus(-2)),
            (25, 0x7fff_fffe),
            (26, 0xabcd_1234 & !100),
            (27, !100),
            (28, 0),
            (8, 1),
        ],
    );
}

#[test]
fn memory_and_vectors() {
    // sub sp,sp,#64; mov x0,#11; mov x1,#22; stp x0,x1,[sp,#16]!; ldp x2,x3,[sp],#-16; mov w4,#-1; strb w4,[sp,#3];
    // ldrsb x5,[sp,#3]; ldrsb w6,[sp,#3]; str w4,[sp,#8]; ldrsw x7,[sp,#8]; mov x9,#2; str x1,[sp,x9,lsl #3];
    // ldr x10,[sp,#16]; ldr d0,[sp,#16]; dup v1.2d,x0; ins v1.d[1],x1; str q1,[sp,#32]; ldp x11,x12,[sp,#32];
    // ldaxr x13,[sp]; mov x14,#99; stlxr w15,x14,[sp]; ldr x16,[sp]; fmov d2,#1.5; fmov d3,x0; scvtf d4,x1;
    // fmul d5,d2,d4; fcvtzs x17,d5; fcvtps x18,d2; movi v6.2d,#0; movi v7.4s,#1; add v8.4s,v7.4s,v7.4s;
    // umov w19,v8.s[2]; cmeq v9.4s,v8.4s,v7.4s; umaxv b10,v9.16b; fmov w20,s10; ext v11.16b,v1.16b,v1.16b,#8;
    // fmov x21,d11; uzp1 v12.4s,v7.4s,v8.4s; umov w22,v12.s[3]; ushll v13.2d,v8.2s,#4; umov x23,v13.d[1];
    // shl v14.2d,v1.2d,#3; addp d15,v14.2d; fmov x24,d15; xtn v16.2s,v1.2d; umov w25,v16.s[1]; add sp,sp,#64; ret
    let words = [
        0xff0301d1, 0x600180d2, 0xc10280d2, 0xe00781a9, 0xe20fffa8, 0x04008012, 0xe40f0039, 0xe50f8039, 0xe60fc039,
        0xe40b00b9, 0xe70b80b9, 0x490080d2, 0xe17b29f8, 0xea0b40f9, 0xe00b40fd, 0x010c084e, 0x211c184e, 0xe10b803d,
        0xeb3342a9, 0xedff5fc8, 0x6e0c80d2, 0xeeff0fc8, 0xf00340f9, 0x02106f1e, 0x0300679e, 0x2400629e, 0x4508641e,
        0xb100789e, 0x5200689e, 0x06e4006f, 0x2704004f, 0xe884a74e, 0x133d140e, 0x098da76e, 0x2aa9306e, 0x5401261e,
        0x2b40016e, 0x7501669e, 0xec18884e, 0x963d1c0e, 0x0da5242f, 0xb73d184e, 0x2e54434f, 0xcfb9f15e, 0xf801669e,
        0x3028a10e, 0x193e0c0e, 0xff030191, 0xc0035fd6,
    ];
    registers(
        &words,
        &[
            (2, 11),
            (3, 22),
            (5, u64::MAX),
            (6, 0xffff_ffff),
            (7, u64::MAX),
            (10, 22),
            (11, 11),
            (12, 22),
            (13, 0xff00_0000),
            (15, 0),
            (16, 99),
            (17, 33),
            (18, 2),
            (19, 2),
            (20, 0),
            (21, 22),
            (22, 2),
            (23, 32),
            (24, 264),
            (25, 22),
        ],
    );
}

/// cmp x0,#1; ccmp x1,#5,#4,ne; b.eq +8; mov x2,#1 … mov x2,#2; ret
const CONDITIONAL_COMPARE: [u32; 7] =
    [0x1f0400f1, 0x241845fa, 0x40000054, 0x220080d2, 0xc0035fd6, 0x420080d2, 0xc0035fd6];

#[test]
fn a_conditional_comparison_compares_or_takes_its_flags() {
    let result = |x0: u64, x1: u64| {
        let arguments = [Value::new(x0), Value::new(x1)];
        run(&CONDITIONAL_COMPARE, |cpu, bus| cpu.set_arguments(bus, &arguments), |cpu, _, _| cpu.general(2, 8).bits)
    };
    // equal to 1, or to 5: the jump goes one instruction ahead of `mov x2,#2`'s, to the return
    assert_eq!(result(1, 0), 0);
    assert_eq!(result(2, 5), 0);
    assert_eq!(result(2, 6), 1);
}

#[test]
fn a_conditional_comparison_of_symbols_is_a_branch() {
    let first = |cpu: &mut Aarch64, bus: &mut Bus<'_>| {
        let shadow = bus.expressions.symbol(Origin::Tensor(0, Property::Size(0)), 13);
        cpu.set_arguments(bus, &[Value { bits: 13, shadow: Some(shadow) }, Value::new(5)]);
    };
    run(&CONDITIONAL_COMPARE, first, |cpu, bus, event| {
        let Event::Branch { condition, taken, otherwise, .. } = event else { panic!("{event:?}") };
        assert_eq!((condition.relation, condition.right.bits), (Relation::NotEqual, 1));
        cpu.set_pc(taken);
        assert_eq!(cpu.run(bus), Event::Outside(BACK));
        assert_eq!(cpu.general(2, 8).bits, 0, "compared: equal to 5");
        assert_ne!(taken, otherwise);
    });
}

/// Any word may stand in a file. Deterministic, so that a failure can be repeated.
#[test]
fn no_word_panics() {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut bus = Bus::new(u64::MAX);
    let mut cpu = Aarch64::new();
    let mut modelled = 0;
    for round in 0..300_000u32 {
        let op = super::decode::op_of(random() & !3, random() as u32);
        if round % 64 == 0 {
            // small and large numbers, and one that depends on a symbol
            for register in 0..32 {
                let bits = random() >> (random() % 64);
                let origin = Origin::Tensor(0, Property::Size(register as u8));
                let shadow = (register % 8 == 7).then(|| bus.expressions.symbol(origin, bits as i64));
                let bits = shadow.map_or(bits, |shadow| bus.expressions.eval(shadow) as u64);
                cpu.registers.general[register] = Value { bits, shadow };
            }
        }
        if (op.semantics)(&mut cpu, &mut bus, &op) != super::Step::Leave {
            modelled += 1;
        }
        cpu.event = None;
    }
    assert!(modelled > 50_000, "{modelled}");
}

#[test]
fn arguments_are_what_is_read_before_it_is_written() {
    // stp x29,x30,[sp,#-16]!; ldr w3,[x0]; str w3,[x1]; add x2,x2,#1; mov x4,#1; add x5,x4,x4; ret
    let words = [0xfd7bbfa9, 0x030040b9, 0x230000b9, 0x42040091, 0x240080d2, 0x8500048b, 0xc0035fd6];
    run(&words, |_, _| {}, |cpu, bus, _| assert_eq!(cpu.arguments_read(bus, CODE, 100), 3));
    // cbz x6, over the next; mov x7,x5; bl onwards; str x7,[x6]
    let words = [0x460000b4, 0xe70305aa, 0x01000094, 0xc70000f9];
    run(&words, |_, _| {}, |cpu, bus, _| assert_eq!(cpu.arguments_read(bus, CODE, 100), 7));
}
