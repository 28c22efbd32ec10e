//! Strides of one input. What is fixed in the code is compared exactly, whatever the size of the dim (the generated
//! check has no exception); symbolic strides follow `assert_size_stride`, which leaves out dims of size 0 and 1.

use super::Sink;
use super::shapes::Shapes;
use crate::checks::sizes::Holds;
use crate::model::{Dim, Expr, TensorSpec};
use crate::report::{Finding, Outcome};
use crate::target::{Size, StrideRequest, TensorRequest};

/// Judges the strides of one input, given or assumed.
pub fn judge(sink: &mut Sink, shapes: &mut Shapes, input: &TensorSpec, tensor: &TensorRequest) {
    let fact = format!("inputs[{}].stride", input.index);
    let name = input.called("input");
    let given_sizes = match (shapes.given.get(&input.index), &tensor.shape) {
        (Some(sizes), _) => sizes.clone(),
        // a wrong rank has its own finding
        (None, Some(_)) => return,
        (None, None) => own_sizes(input),
    };
    let contiguous = row_major(&given_sizes, None);
    let asked: Vec<Option<Expr>> = match &tensor.stride {
        None if tensor.shape.is_some() => return assume_contiguous(sink, shapes, input, &given_sizes, &contiguous),
        None => return,
        Some(StrideRequest::Contiguous) => contiguous.clone(),
        Some(StrideRequest::ChannelsLast) => match channels_last(&given_sizes, 4) {
            Some(strides) => strides,
            None => return wrong_rank(sink, &fact, &name, "channels_last is for 4 dims", given_sizes.len()),
        },
        Some(StrideRequest::ChannelsLast3d) => match channels_last(&given_sizes, 5) {
            Some(strides) => strides,
            None => return wrong_rank(sink, &fact, &name, "channels_last_3d is for 5 dims", given_sizes.len()),
        },
        Some(StrideRequest::Values(values)) => {
            values.iter().enumerate().map(|(d, v)| given_stride(shapes, v, input.index, d)).collect()
        }
    };
    let rank = input.rank.or_else(|| tensor.shape.as_ref().map(Vec::len));
    if rank.is_some_and(|rank| rank != asked.len()) {
        return wrong_rank(sink, &fact, &name, &format!("{} strides are given", asked.len()), rank.unwrap_or_default());
    }
    let Some(compiled) = &input.stride else {
        if !asked.is_empty() {
            sink.unknown("input-stride", &fact, &format!("whether {name} takes the given strides"));
        }
        return;
    };
    for (d, asked) in asked.iter().enumerate() {
        let Some(asked) = asked else { continue };
        let size = given_sizes.get(d).and_then(Option::as_ref);
        let plain = contiguous.get(d).and_then(Option::as_ref);
        let fact = format!("{fact}[{d}]");
        let verdict = compare(shapes, stated(input, compiled, d), asked, size, plain, (input.index, d));
        let given = shapes.show(asked);
        match verdict {
            Compared::Same(how) => sink.pass("input-stride", &fact, || format!("{name} stride {d} is {given}{how}")),
            Compared::Differs(wanted) => {
                let message = format!("{name} stride {d} must be {wanted}, not {given}");
                sink.fail("input-stride", &fact, message, |f| {
                    f.sides(wanted, given)
                        .fix("copy the input into the expected layout (`.contiguous()`, or `.contiguous(memory_format=…)`)")
                        .evidence(input.evidence.iter().cloned())
                });
            }
            Compared::NotStated => {
                let message =
                    format!("{name} stride {d}: the file does not state it, and {given} is not the contiguous one");
                sink.undecided("input-stride", &fact, message);
            }
            Compared::Undecided(wanted) => {
                sink.undecided("input-stride", &fact, format!("cannot settle whether {given} is always {wanted}"));
            }
        }
    }
}

/// A stride that some witness states. One that was inferred to be contiguous refuses nothing: another may be right.
fn stated<'a>(input: &TensorSpec, compiled: &'a [Option<Dim>], d: usize) -> Option<&'a Dim> {
    compiled.get(d).and_then(Option::as_ref).filter(|_| !input.is_inferred(&format!("stride[{d}]")))
}

enum Compared {
    /// holds; the text says by which rule where it is not plain
    Same(&'static str),
    Differs(String),
    NotStated,
    Undecided(String),
}

fn compare(
    shapes: &mut Shapes,
    compiled: Option<&Dim>,
    asked: &Expr,
    size: Option<&Expr>,
    contiguous: Option<&Expr>,
    place: (usize, usize),
) -> Compared {
    let is_contiguous =
        |shapes: &Shapes| contiguous.is_some_and(|plain| shapes.variables.equal(plain, asked) == Holds::Always);
    let Some(compiled) = compiled else {
        return if is_contiguous(shapes) { Compared::Same(", as for contiguous") } else { Compared::NotStated };
    };
    if let Dim::Static { size: fixed } = compiled {
        return match shapes.variables.equal(asked, &Expr::Int(*fixed)) {
            Holds::Always => Compared::Same(""),
            Holds::Not { .. } => Compared::Differs(fixed.to_string()),
            Holds::Undecided => Compared::Undecided(fixed.to_string()),
        };
    }
    if size.is_some_and(|size| shapes.variables.within(size, None, Some(1)) == Holds::Always) {
        return Compared::Same(", which does not matter for a size of 0 or 1");
    }
    if let Dim::Symbol { symbol, .. } = compiled {
        shapes.bind(symbol, asked.clone(), place);
    }
    let wanted = compiled.expr();
    let Some(value) = shapes.value_of(&wanted) else {
        return if is_contiguous(shapes) { Compared::Same(", as for contiguous") } else { Compared::NotStated };
    };
    match shapes.variables.equal(asked, &value) {
        Holds::Always => Compared::Same(""),
        // an empty tensor keeps the strides of a size of 1
        Holds::Not { .. } if is_contiguous(shapes) && shapes.variables.range(&value) == (Some(0), Some(0)) => {
            Compared::Same(", as for an empty tensor")
        }
        Holds::Not { .. } => {
            Compared::Differs(if value == wanted { wanted.to_string() } else { format!("{wanted} = {value}") })
        }
        Holds::Undecided => Compared::Undecided(wanted.to_string()),
    }
}

/// Strides are not given: contiguous ones are taken for granted, which is said; others are only warned about.
fn assume_contiguous(
    sink: &mut Sink,
    shapes: &mut Shapes,
    input: &TensorSpec,
    sizes: &[Option<Expr>],
    contiguous: &[Option<Expr>],
) {
    let fact = format!("inputs[{}].stride", input.index);
    let name = input.called("input");
    let Some(compiled) = &input.stride else {
        sink.not_asked(format!("strides of {name}"));
        return;
    };
    let mut differs = false;
    for (d, plain) in contiguous.iter().enumerate() {
        let Some(plain) = plain else { continue };
        let size = sizes.get(d).and_then(Option::as_ref);
        let compiled = stated(input, compiled, d);
        differs |=
            matches!(compare(shapes, compiled, plain, size, Some(plain), (input.index, d)), Compared::Differs(_));
    }
    if compiled.is_empty() {
        return;
    }
    if differs {
        let wanted: Vec<String> = compiled.iter().map(|d| d.as_ref().map_or("?".to_owned(), Dim::to_string)).collect();
        let wanted = format!("[{}]", wanted.join(", "));
        let message = format!(
            "{name} is compiled for strides {wanted}, not for contiguous ones; no strides were given to compare"
        );
        sink.push(
            Finding::new("input-not-contiguous", Outcome::Warn, sink.subject.path(&fact), message)
                .sides(wanted, "contiguous (assumed)")
                .fix("give the strides of the real input with --stride, and make it so before the call"),
        );
    } else {
        sink.pass("input-stride", &fact, || format!("{name}: no strides given, contiguous assumed, which fits"));
    }
}

fn wrong_rank(sink: &mut Sink, fact: &str, name: &str, what: &str, rank: usize) {
    sink.fail("input-stride", fact, format!("{name} has {rank} dims, but {what}"), |f| f);
}

fn given_stride(shapes: &mut Shapes, value: &Size, input: usize, d: usize) -> Option<Expr> {
    match value {
        Size::Any => None,
        Size::Is(expr) => Some(expr.clone()),
        Size::Within(span) => {
            let name = format!("inputs[{input}].stride[{d}]");
            shapes.variables.narrow(&name, *span);
            Some(Expr::Symbol(name))
        }
    }
}

/// The artefact's own sizes, for strides that are asked without a shape.
fn own_sizes(input: &TensorSpec) -> Vec<Option<Expr>> {
    input.shape.iter().flatten().map(|dim| dim.as_ref().and_then(Dim::as_static).map(Expr::Int)).collect()
}

/// Strides of a new tensor: the product of the sizes behind, each at least 1. `order` lists dims from the slowest.
fn row_major(sizes: &[Option<Expr>], order: Option<&[usize]>) -> Vec<Option<Expr>> {
    let natural: Vec<usize> = (0..sizes.len()).collect();
    let mut strides = vec![None; sizes.len()];
    let mut step = Some(Expr::Int(1));
    for d in order.unwrap_or(&natural).iter().rev() {
        if let Some(stride) = strides.get_mut(*d) {
            stride.clone_from(&step);
        }
        let size = sizes.get(*d).and_then(Option::as_ref).map(|size| match size {
            Expr::Int(n) => Expr::Int((*n).max(1)),
            size => size.clone(),
        });
        step = step.zip(size).map(|(step, size)| step.mul(&size));
    }
    strides
}

/// `torch.channels_last`: the channel dim moves fastest.
fn channels_last(sizes: &[Option<Expr>], rank: usize) -> Option<Vec<Option<Expr>>> {
    let order: &[usize] = if rank == 4 { &[0, 2, 3, 1] } else { &[0, 2, 3, 4, 1] };
    (sizes.len() == rank).then(|| row_major(sizes, Some(order)))
}
