//! Pages, fragments, claims and edges as rows: their columns in order, and how they are read.

use matsu_core::id::{ClaimId, EdgeId, FragmentId, JobId, PageId, TaskId};
use matsu_core::ports::store::StoreError;
use matsu_core::principal::Principal;
use matsu_core::research::evidence::{Adoption, Claim, Edge, Extraction, Fragment, PageOrigin, Relation, SourcePage};
use matsu_core::research::headings::Headings;

use crate::sql::{Columns, internal};

macro_rules! page_columns {
    () => {
        "p.id, p.url, p.owner, p.final_url, p.domain, p.origin, p.title, p.language, p.year, p.doi, p.authors_json, \
         p.is_primary, p.content_hash, p.etag, p.last_modified, p.fetched_at"
    };
}
macro_rules! fragment_columns {
    () => {
        "f.id, f.page_id, f.position, f.text, f.heading, f.char_offset, f.hash, f.sketch"
    };
}
macro_rules! claim_columns {
    () => {
        "c.id, c.task_id, c.job_id, c.text, c.quote, c.fragment_id, c.context, c.relevance, c.parts_json, \
         c.extraction, c.adoption, c.rejection_reason, c.created_at"
    };
}
macro_rules! edge_columns {
    () => {
        "e.id, e.claim_id, e.fragment_id, e.relation, e.probability, e.stance_json, e.calibration_version, \
         e.is_corrected, e.created_at"
    };
}
/// Rows that a cancelled job of the task `$1` wrote are left out.
macro_rules! not_cancelled {
    ($column:literal) => {
        concat!($column, " NOT IN (SELECT id FROM jobs WHERE task_id = $1 AND state = 'cancelled')")
    };
}
pub(crate) use {claim_columns, edge_columns, fragment_columns, not_cancelled, page_columns};

pub fn page(c: &mut Columns<'_>) -> Result<SourcePage, StoreError> {
    Ok(SourcePage {
        id: PageId::from_text(c.text()?),
        url: c.text()?,
        owner: Some(c.text()?).filter(|owner| !owner.is_empty()).map(Principal::from_text),
        final_url: c.text()?,
        domain: c.text()?,
        origin: c.word(PageOrigin::parse)?,
        title: c.text()?,
        language: c.opt_text()?,
        year: c.opt_int()?.map(i32::try_from).transpose().map_err(internal)?,
        doi: c.opt_text()?,
        authors: json(&c.text()?)?,
        is_primary: c.int()? != 0,
        content_hash: c.text()?,
        etag: c.opt_text()?,
        last_modified: c.opt_text()?,
        fetched_at: c.time()?,
    })
}

pub fn fragment(c: &mut Columns<'_>) -> Result<Fragment, StoreError> {
    Ok(Fragment {
        id: FragmentId::from_text(c.text()?),
        page_id: PageId::from_text(c.text()?),
        position: c.count()?,
        text: c.text()?,
        headings: Headings::from_stored(&c.text()?),
        offset: c.count()?,
        hash: c.text()?,
        sketch: c.int()?.cast_unsigned(),
    })
}

pub fn claim(c: &mut Columns<'_>) -> Result<Claim, StoreError> {
    Ok(Claim {
        id: ClaimId::from_text(c.text()?),
        task_id: TaskId::from_text(c.text()?),
        job_id: JobId::from_text(c.text()?),
        text: c.text()?,
        quote: c.text()?,
        fragment_id: FragmentId::from_text(c.text()?),
        context: c.text()?,
        relevance: c.count()?,
        parts: json(&c.text()?)?,
        extraction: c.word(Extraction::parse)?,
        adoption: c.word(Adoption::parse)?,
        rejection_reason: c.opt_text()?,
        created_at: c.time()?,
    })
}

pub fn edge(c: &mut Columns<'_>) -> Result<Edge, StoreError> {
    Ok(Edge {
        id: EdgeId::from_text(c.text()?),
        claim_id: ClaimId::from_text(c.text()?),
        fragment_id: FragmentId::from_text(c.text()?),
        relation: c.word(Relation::parse)?,
        probability: number(&c.text()?)?,
        stance: c.opt_text()?.map(|text| json(&text)).transpose()?,
        calibration_version: c.count()?,
        is_corrected: c.int()? != 0,
        created_at: c.time()?,
    })
}

/// A number that was kept as text, every digit of it.
pub fn number(text: &str) -> Result<f64, StoreError> {
    text.parse().map_err(internal)
}

pub fn json<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(internal)
}

pub fn to_json<T: serde::Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(internal)
}
