//! What one step of a search found: pages, claims, edges, needed logins, costs and the checkpoint, in one transaction
//! and under the fence.

use std::collections::HashMap;

use matsu_core::change::{ChangeKind, Topic};
use matsu_core::clock::Timestamp;
use matsu_core::id::{AuthItemId, ClaimId, EdgeId, FragmentId, PageId, TaskId};
use matsu_core::job::Lease;
use matsu_core::ports::store::{
    NewAuthItem, NewClaim, NewEdge, NewEvidence, NewPage, RecordEvidence, Recorded, StoreError,
};
use matsu_core::principal::Principal;
use matsu_core::research::agreement::Statement;
use matsu_core::research::confidence::{Confidence, Vote, counted_edges};
use matsu_core::research::evidence::{Adoption, Relation};
use matsu_core::research::fingerprint::fingerprint;
use matsu_core::research::headings::subject;
use matsu_core::research::sentences::is_wide;

use super::evidence_rows::{not_cancelled, number, to_json};
use crate::sql::{Sql, Transition, Tx, internal, params};
use crate::transitions::ledger::Ledger;
use crate::transitions::tasks::spending::{held_job, settle_reservation};
use crate::transitions::tasks::update_job::{CHECKPOINT, task_of};

const UPSERT_PAGE: Sql = Sql::both(
    "INSERT INTO pages (id, url, owner, final_url, domain, origin, title, language, year, doi, authors_json, \
     is_primary, content_hash, etag, last_modified, fetched_at) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16) \
     ON CONFLICT (url, owner) DO UPDATE SET final_url = excluded.final_url, domain = excluded.domain, \
     origin = excluded.origin, title = excluded.title, language = excluded.language, year = excluded.year, \
     doi = excluded.doi, authors_json = excluded.authors_json, is_primary = excluded.is_primary, \
     content_hash = excluded.content_hash, etag = excluded.etag, last_modified = excluded.last_modified, \
     fetched_at = excluded.fetched_at RETURNING id",
);
const UPSERT_FRAGMENT: Sql = Sql::both(
    "INSERT INTO fragments (id, page_id, content_hash, position, text, heading, char_offset, hash, sketch) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) ON CONFLICT (page_id, hash) DO UPDATE SET \
     content_hash = excluded.content_hash, position = excluded.position, heading = excluded.heading, \
     char_offset = excluded.char_offset RETURNING id",
);
/// Only what is still there: a clean-up may have been faster.
const REACH: Sql = Sql::each(
    "INSERT INTO task_pages (task_id, page_id, job_id, attempt, at) \
     SELECT $1, id, $3, $4, $5 FROM pages WHERE id = $2 ON CONFLICT (task_id, page_id) DO NOTHING",
    "INSERT INTO task_pages (task_id, page_id, job_id, attempt, at) \
     SELECT CAST($1 AS TEXT), id, CAST($3 AS TEXT), CAST($4 AS BIGINT), CAST($5 AS BIGINT) FROM pages WHERE id = $2 \
     ON CONFLICT (task_id, page_id) DO NOTHING",
);
const INSERT_CLAIM: Sql = Sql::both(
    "INSERT INTO claims (id, task_id, job_id, attempt, text, text_hash, quote, fragment_id, extraction, adoption, \
     confidence, uncertainty, controversy, n_supports, n_refutes, created_at, context, relevance, parts_json) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 500, 289, 0, 0, 0, $11, $12, $13, $14) \
     ON CONFLICT (task_id, fragment_id, text_hash) DO NOTHING",
);
const INSERT_EDGE: Sql = Sql::both(
    "INSERT INTO edges (id, claim_id, fragment_id, relation, probability, stance_json, source, calibration_version, \
     is_corrected, job_id, attempt, created_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $9, $10, $11) \
     ON CONFLICT (claim_id, fragment_id) DO NOTHING",
);
const VOTES: Sql = Sql::both(
    "SELECT e.relation, e.probability, p.domain, e.is_corrected FROM edges e JOIN fragments f ON f.id = e.fragment_id \
     JOIN pages p ON p.id = f.page_id WHERE e.claim_id = $1 ORDER BY e.id",
);
const SAME_CLAIM: Sql = Sql::both(concat!(
    "SELECT c.id FROM claims c WHERE c.task_id = $1 AND c.text_hash = $2 AND c.fragment_id <> $3 AND ",
    not_cancelled!("c.job_id"),
    " ORDER BY c.seq LIMIT 1"
));
/// Claims that may be copies: about as long, and with two of three long words. Only these few are compared word by word,
/// because a task may have thousands of claims and this runs while other writes wait.
const MAY_BE_COPIES: Sql = Sql::both(concat!(
    "SELECT c.id, c.text, c.context FROM claims c WHERE c.task_id = $1 AND CAST(length(c.text) AS BIGINT) BETWEEN $2 AND $3 AND \
     (c.text LIKE $4 AND c.text LIKE $5 OR c.text LIKE $4 AND c.text LIKE $6 OR c.text LIKE $5 AND c.text LIKE $6) AND ",
    not_cancelled!("c.job_id"),
    " ORDER BY c.seq"
));
const SCORE: Sql = Sql::both(
    "UPDATE claims SET confidence = $2, uncertainty = $3, controversy = $4, n_supports = $5, n_refutes = $6 \
     WHERE id = $1",
);
const INSERT_HIT: Sql = Sql::both(
    "INSERT INTO hits (task_id, job_id, attempt, engine, place, url, title, snippet) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
);
const RAISE: Sql = Sql::each(
    "INSERT INTO auth_items (id, owner, url, domain, auth_type, priority, status, created_at, expires_at) \
     VALUES ($1, $2, $3, $4, $5, $6, 'pending', $7, $8) ON CONFLICT (owner, url) WHERE status = 'pending' \
     DO UPDATE SET priority = min(auth_items.priority, excluded.priority) RETURNING id",
    "INSERT INTO auth_items (id, owner, url, domain, auth_type, priority, status, created_at, expires_at) \
     VALUES ($1, $2, $3, $4, $5, $6, 'pending', $7, $8) ON CONFLICT (owner, url) WHERE status = 'pending' \
     DO UPDATE SET priority = least(auth_items.priority, excluded.priority) RETURNING id",
);
const BLOCK: Sql = Sql::both(
    "INSERT INTO auth_blocked (item_id, job_id, task_id, attempt, at) VALUES ($1, $2, $3, $4, $5) \
     ON CONFLICT (item_id, job_id) DO UPDATE SET attempt = excluded.attempt, at = excluded.at",
);
const TALLY: Sql = Sql::both(
    "INSERT INTO searches (job_id, task_id, attempt, ended_as, tally_json) VALUES ($1, $2, $3, $4, $5) \
     ON CONFLICT (job_id) DO UPDATE SET attempt = excluded.attempt, ended_as = excluded.ended_as, \
     tally_json = excluded.tally_json",
);

/// A copy is longer or shorter by at most this part.
const LENGTH_PART: i64 = 4;
/// Letters of a script without spaces that are looked for as a word.
const WIDE_LETTERS: usize = 4;

/// Patterns of the three longest words of a text: two sentences that say the same have most words in common, and can
/// differ in none by another word. Of a text of fewer words the last one stands for those that lack.
fn patterns(text: &str) -> Option<[String; 3]> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let chars: Vec<char> = word.chars().collect();
        let size = if chars.iter().any(|c| is_wide(*c)) { WIDE_LETTERS } else { chars.len() };
        words.extend(chars.chunks(size).map(String::from_iter));
    }
    words.sort_by_key(|word| std::cmp::Reverse(word.chars().count()));
    let word = |at: usize| words.get(at).or(words.last()).map(|word| format!("%{word}%"));
    Some([word(0)?, word(1)?, word(2)?])
}

/// What tells a claim from others: its words, and what they are about if they do not say it.
fn identity(text: &str, context: &str) -> String {
    match subject(text, context) {
        "" => fingerprint(text),
        about => fingerprint(format!("{about}\n{text}")),
    }
}

impl Transition for RecordEvidence {
    async fn run(&self, tx: &mut Tx<'_>) -> Result<Recorded, StoreError> {
        let Some(task_id) = task_of(tx, &self.lease).await? else {
            return Err(internal("evidence belongs to a task"));
        };
        let mut ledger = Ledger::lock(tx, [task_id.clone()]).await?;
        // Again behind the task's lock, and with the job's row locked: the answer holds until the commit.
        held_job(tx, &self.lease).await?;
        let owner = ledger.existing(&task_id)?.owner.clone();
        let by = By { lease: &self.lease, task_id: &task_id, owner: &owner, now: self.now };
        let found = &self.evidence;
        let mut recorded = Recorded::default();
        by.hits(tx, found).await?;
        let mut stored = HashMap::new();
        if let Some(page) = &found.page {
            recorded.page_id = Some(by.page(tx, page, &mut stored).await?);
        }
        for page in &found.reused {
            by.reach(tx, page).await?;
        }
        let mut has_new_origin = false;
        for claim in &found.claims {
            let written = by.claim(tx, claim, &stored).await?;
            recorded.claims += u32::from(written.is_new);
            has_new_origin |= written.has_new_origin;
        }
        recorded.edges = by.edges(tx, &found.edges).await?;
        if let Some(item) = &found.auth {
            recorded.auth_item = Some(by.login(tx, item).await?);
            ledger.change(&task_id, ChangeKind::JobParked, |task| task.attention_revision = task.revision + 1);
        }
        for (reservation, spent) in &found.spent {
            settle_reservation(tx, &self.lease, reservation, *spent).await?;
        }
        by.tally(tx, found).await?;
        // A known claim that is found in a second place is no new claim, but its list of origins has grown.
        let new_rows = recorded.claims > 0 || has_new_origin || recorded.edges > 0 || recorded.page_id.is_some();
        if new_rows || !found.hits.is_empty() || !found.reused.is_empty() || found.tally.is_some() {
            ledger.change(&task_id, ChangeKind::Progress, |_| {});
        }
        ledger.write(tx, self.now).await?;
        Ok(recorded)
    }
}

/// The lease, the task, the owner and the time of a write.
struct By<'a> {
    lease: &'a Lease,
    task_id: &'a TaskId,
    owner: &'a Principal,
    now: Timestamp,
}

/// What the write of one claim changed.
#[derive(Default)]
struct WrittenClaim {
    is_new: bool,
    has_new_origin: bool,
}

impl By<'_> {
    async fn hits(&self, tx: &mut Tx<'_>, found: &NewEvidence) -> Result<(), StoreError> {
        for hit in &found.hits {
            let (lease, place) = (self.lease, i64::from(hit.rank));
            let who = params![self.task_id, &lease.job_id, lease.attempt];
            let what = params![&hit.engine, place, &hit.url, &hit.title, &hit.snippet];
            tx.run(&INSERT_HIT, &[who, what].concat()).await?;
        }
        Ok(())
    }

    async fn page(
        &self,
        tx: &mut Tx<'_>,
        new: &NewPage,
        stored: &mut HashMap<FragmentId, FragmentId>,
    ) -> Result<PageId, StoreError> {
        let page = &new.page;
        let authors = to_json(&page.authors)?;
        let owner = page.owner.as_ref().map_or("", Principal::as_str);
        let row = params![
            &page.id,
            &page.url,
            owner,
            &page.final_url,
            &page.domain,
            page.origin.as_str(),
            &page.title,
            page.language.as_ref(),
            page.year.map(i64::from),
            page.doi.as_ref(),
            &authors,
            i64::from(page.is_primary),
            &page.content_hash,
            page.etag.as_ref(),
            page.last_modified.as_ref(),
            page.fetched_at,
        ];
        let id = tx.row(&UPSERT_PAGE, row).await?.ok_or_else(|| internal("a page has no id"))?.only_text()?;
        let id = PageId::from_text(id);
        for fragment in &new.fragments {
            let headings = fragment.headings.to_stored();
            let row = params![
                &fragment.id,
                &id,
                &page.content_hash,
                fragment.position,
                &fragment.text,
                &headings,
                fragment.offset,
                &fragment.hash,
                fragment.sketch.cast_signed(),
            ];
            let kept = tx.row(&UPSERT_FRAGMENT, row).await?.ok_or_else(|| internal("a fragment has no id"))?;
            stored.insert(fragment.id.clone(), FragmentId::from_text(kept.only_text()?));
        }
        self.reach(tx, &id).await?;
        Ok(id)
    }

    async fn reach(&self, tx: &mut Tx<'_>, page: &PageId) -> Result<(), StoreError> {
        let row = params![self.task_id, page, &self.lease.job_id, self.lease.attempt, self.now];
        tx.run(&REACH, row).await?;
        Ok(())
    }

    /// Writes a claim and its origins. Its own fragment is its origin, which never scores.
    async fn claim(
        &self,
        tx: &mut Tx<'_>,
        claim: &NewClaim,
        stored: &HashMap<FragmentId, FragmentId>,
    ) -> Result<WrittenClaim, StoreError> {
        let fragment = stored.get(&claim.fragment_id).unwrap_or(&claim.fragment_id);
        let (hash, parts) = (identity(&claim.text, &claim.context), to_json(&claim.parts)?);
        let row = params![
            &claim.id,
            self.task_id,
            &self.lease.job_id,
            self.lease.attempt,
            &claim.text,
            &hash,
            &claim.quote,
            fragment,
            claim.extraction.as_str(),
            Adoption::Adopted.as_str(),
            self.now,
            &claim.context,
            claim.relevance,
            &parts,
        ];
        // The same statement in another place is one claim with two origins, whichever search found it.
        let known = match tx.row(&SAME_CLAIM, params![self.task_id, &hash, fragment]).await? {
            Some(known) => Some(ClaimId::from_text(known.only_text()?)),
            None => self.near_claim(tx, &claim.text, &claim.context).await?,
        };
        let (id, is_new) = match known {
            Some(known) => (known, false),
            None if tx.run(&INSERT_CLAIM, row).await? == 0 => return Ok(WrittenClaim::default()),
            None => (claim.id.clone(), true),
        };
        let mut has_new_origin = self.origin(tx, &id, fragment).await?;
        for other in &claim.also {
            has_new_origin |= self.origin(tx, &id, stored.get(other).unwrap_or(other)).await?;
        }
        Ok(WrittenClaim { is_new, has_new_origin })
    }

    /// The first claim of the task that says the same in nearly the same words. It is looked up behind the task's lock, so
    /// that two searches which end at once cannot both write theirs.
    async fn near_claim(&self, tx: &mut Tx<'_>, text: &str, context: &str) -> Result<Option<ClaimId>, StoreError> {
        let Some(patterns) = patterns(text) else { return Ok(None) };
        let chars = i64::try_from(text.chars().count()).map_err(internal)?;
        let (shortest, longest) = (chars - chars / LENGTH_PART, chars + chars / LENGTH_PART);
        let [first, second, third] = &patterns;
        let statement = Statement::of(text);
        let row = params![self.task_id, shortest, longest, first, second, third];
        for row in tx.rows(&MAY_BE_COPIES, row).await? {
            let mut c = row.columns();
            let (id, known, its_context) = (c.text()?, c.text()?, c.text()?);
            if subject(text, context) == subject(&known, &its_context) && statement.is_same_as(&known) {
                return Ok(Some(ClaimId::from_text(id)));
            }
        }
        Ok(None)
    }

    /// Where a claim stands. Such an edge never scores. Returns whether it was new.
    async fn origin(&self, tx: &mut Tx<'_>, claim: &ClaimId, fragment: &FragmentId) -> Result<bool, StoreError> {
        let (id, lease, origin) = (EdgeId::mint(self.now), self.lease, Relation::Origin.as_str());
        let what = params![&id, claim, fragment, origin, "1", None::<&str>, None::<&str>, 0_i64];
        let rows = tx.run(&INSERT_EDGE, &[what, params![&lease.job_id, lease.attempt, self.now]].concat()).await?;
        Ok(rows > 0)
    }

    async fn edges(&self, tx: &mut Tx<'_>, edges: &[NewEdge]) -> Result<u32, StoreError> {
        let mut written = 0;
        let mut touched: Vec<&ClaimId> = Vec::new();
        for edge in edges {
            let (id, lease, stance) = (EdgeId::mint(self.now), self.lease, to_json(&edge.stance)?);
            let probability = edge.probability.to_string();
            let what = params![&id, &edge.claim_id, &edge.fragment_id, edge.relation.as_str(), &probability];
            let whose = params![&stance, &edge.source, edge.calibration_version];
            let row = [what, whose, params![&lease.job_id, lease.attempt, self.now]].concat();
            if tx.run(&INSERT_EDGE, &row).await? > 0 {
                written += 1;
                if !touched.contains(&&edge.claim_id) {
                    touched.push(&edge.claim_id);
                }
            }
        }
        for claim in touched {
            score(tx, claim).await?;
        }
        Ok(written)
    }

    async fn login(&self, tx: &mut Tx<'_>, item: &NewAuthItem) -> Result<AuthItemId, StoreError> {
        let fresh = AuthItemId::mint(self.now);
        let row = params![
            &fresh,
            self.owner,
            &item.url,
            &item.domain,
            item.auth_type.as_str(),
            item.priority.rank(),
            self.now,
            item.expires_at,
        ];
        let row = tx.row(&RAISE, row).await?.ok_or_else(|| internal("an auth item has no id"))?;
        let id = AuthItemId::from_text(row.only_text()?);
        let row = params![&id, &self.lease.job_id, self.task_id, self.lease.attempt, self.now];
        tx.run(&BLOCK, row).await?;
        tx.publish(Topic::auth());
        Ok(id)
    }

    async fn tally(&self, tx: &mut Tx<'_>, found: &NewEvidence) -> Result<(), StoreError> {
        let lease = self.lease;
        if let Some(tally) = &found.tally {
            let (text, ended_as) = (to_json(tally)?, tally.ended_as.map(|status| status.as_str()));
            tx.run(&TALLY, params![&lease.job_id, self.task_id, lease.attempt, ended_as, &text]).await?;
        }
        if let Some(checkpoint) = &found.checkpoint_json {
            tx.run(&CHECKPOINT, params![&lease.job_id, lease.attempt, checkpoint]).await?;
        }
        Ok(())
    }
}

/// Makes a claim's figures anew from its edges. Returns its confidence, in thousandths.
pub async fn score(tx: &mut Tx<'_>, claim: &ClaimId) -> Result<u32, StoreError> {
    let mut votes = Vec::new();
    for row in tx.rows(&VOTES, params![claim]).await? {
        let mut c = row.columns();
        let (relation, probability) = (c.word(Relation::parse)?, number(&c.text()?)?);
        votes.push(Vote { relation, probability, source: c.text()?, is_corrected: c.int()? != 0 });
    }
    let votes = counted_edges(&votes);
    let figures = Confidence::of(votes.iter().copied());
    let count = |wanted| i64::try_from(votes.iter().filter(|(relation, _)| *relation == wanted).count());
    let (supports, refutes) =
        (count(Relation::Supports).map_err(internal)?, count(Relation::Refutes).map_err(internal)?);
    let [confidence, uncertainty, controversy] =
        [figures.confidence, figures.uncertainty, figures.controversy].map(thousandths);
    tx.run(&SCORE, params![claim, confidence, uncertainty, controversy, supports, refutes]).await?;
    Ok(confidence)
}

/// The figures have three decimals and lie between 0 and 1.
fn thousandths(value: f64) -> u32 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and 1000")]
    let whole = (value * 1000.0).round() as u32;
    whole
}
