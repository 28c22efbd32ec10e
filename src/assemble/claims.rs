//! What the JSON members of a model claim: metadata, custom operators.

use super::device::Statement;
use crate::container::{Container, Member, MemberId, ModelFolder};
use crate::error::{Error, Place};
use crate::image::op_schemas::OpSchemas;
use crate::limits;
use crate::metadata::{aoti, extern_nodes};
use crate::model::{Conflict, CustomOp, Dated, Kind, MetadataEntry, OperatorCall, Problem, Role, Unknown};

/// Metadata of one model, in the loader's order of preference.
#[derive(Debug, Default)]
pub struct Claims {
    /// of the copy that the loader reads
    pub entries: Vec<MetadataEntry>,
    /// `AOTI_DEVICE_KEY` of each copy
    pub device: Vec<Statement>,
    /// `AOTI_CPU_ISA`
    pub cpu_isa: Option<String>,
    /// what the keys tell about the release
    pub dating: Option<Dated>,
    /// copies that differ in other keys than the device
    pub conflicts: Vec<Conflict>,
    /// entries that damage may hide
    pub unknown: Vec<Unknown>,
}

/// Reads all metadata copies of a model.
pub fn metadata(container: &Container, folder: &ModelFolder, problems: &mut Vec<Problem>) -> Claims {
    let mut claims = Claims::default();
    let mut first: Option<aoti::Metadata> = None;
    for member in members(container, &folder.metadata) {
        let text = match member.bytes(limits::JSON_BYTES) {
            Ok(text) => text,
            Err(error) => {
                problems.push(problem(&error, &member, "metadata"));
                continue;
            }
        };
        let mut copy = aoti::read(text, member.name());
        // the copy that the loader reads decides what a caller gets
        if first.is_none() && !copy.problems.is_empty() {
            let reasons: Vec<&str> = copy.problems.iter().map(|p| p.message.as_str()).collect();
            claims.unknown.push(Unknown::new("metadata", reasons.join("; ")));
        }
        problems.extend(copy.problems.drain(..).map(|mut p| {
            p.affects.push("metadata".to_owned());
            p
        }));
        if let Some((device, evidence)) = copy.device() {
            claims.device.push(Statement { device, evidence, is_proof: false });
        }
        match &first {
            // the device is weighed with all its other witnesses
            Some(first) => claims
                .conflicts
                .extend(aoti::differences(first, &copy).into_iter().filter(|conflict| conflict.subject != "device")),
            None => {
                claims.cpu_isa = copy.get(aoti::CPU_ISA).filter(|isa| !isa.is_empty()).map(str::to_owned);
                claims.dating = aoti::date(&copy);
                claims.entries.clone_from(&copy.entries);
                first = Some(copy);
            }
        }
    }
    // a bare library has none, and 2.5 wrote none
    if folder.metadata.is_empty() && container.kind() != Kind::Library && !folder.is_flat {
        let message =
            "the model has no metadata JSON: loaders since torch 2.6 refuse the package without it".to_owned();
        problems.push(Problem { place: Place::default(), message, affects: Vec::new() });
    }
    claims
}

/// Operators that the process must have registered: from the extern nodes where they are there, else the numbers that the
/// code passes.
pub fn custom_ops(
    container: &Container,
    folder: &ModelFolder,
    operators: &[OperatorCall],
    problems: &mut Vec<Problem>,
) -> Vec<CustomOp> {
    let called: Vec<u32> =
        operators.iter().filter_map(|op| op.name.strip_prefix("custom op #")?.parse().ok()).collect();
    let numbered = || {
        let mut numbers = called.clone();
        numbers.sort_unstable();
        numbers.dedup();
        let through = || "proxy_executor".to_owned();
        numbers
            .into_iter()
            .map(|number| CustomOp {
                name: None,
                number: Some(number),
                through: through(),
                is_python_only: None,
                registered_by: None,
            })
            .collect()
    };
    let Some(member) = folder.extern_nodes.and_then(|id| container.member(id)) else { return numbered() };
    let nodes = match member.bytes(limits::JSON_BYTES).and_then(extern_nodes::read) {
        Ok(nodes) => nodes,
        Err(error) => {
            problems.push(problem(&error, &member, "requires.custom_ops"));
            return numbered();
        }
    };
    if let Some(beyond) = called.iter().find(|n| usize::try_from(**n).is_ok_and(|n| n >= nodes.len())) {
        let message = format!("the code calls extern node {beyond}, the list has {}", nodes.len());
        problems.push(problem(&Error::damaged(message), &member, "requires.custom_ops"));
    }
    extern_nodes::custom_ops(&nodes)
}

/// Which operator library of the package registers which operator. A library that cannot be read is a problem.
pub fn find_registered(container: &Container, ops: &mut [CustomOp], problems: &mut Vec<Problem>) {
    if ops.iter().all(|op| op.name.is_none()) {
        return;
    }
    for member in container.members().filter(|member| member.role() == Role::CustomOpLibrary) {
        match member.bytes(limits::CODE_BYTES).and_then(|bytes| Ok((bytes, OpSchemas::read(bytes)?))) {
            Ok((bytes, schemas)) => {
                let open = ops.iter_mut().filter(|op| op.registered_by.is_none());
                for op in open.filter(|op| op.name.as_ref().is_some_and(|name| schemas.define(bytes, name))) {
                    op.registered_by = Some(member.name().to_owned());
                }
            }
            Err(error) => problems.push(problem(&error, &member, "requires.custom_ops")),
        }
    }
}

fn members<'a>(container: &'a Container, ids: &'a [MemberId]) -> impl Iterator<Item = Member<'a>> {
    ids.iter().filter_map(|id| container.member(*id))
}

/// What is wrong with a member, and the fact that it spoils.
pub fn problem(error: &Error, member: &Member<'_>, affects: &str) -> Problem {
    let mut place = error.place().clone();
    place.member.get_or_insert_with(|| member.name().to_owned());
    Problem { place, message: error.message().to_owned(), affects: vec![affects.to_owned()] }
}
