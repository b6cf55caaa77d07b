//! The reading of pages: those of different sites at the same time, each recorded in two steps. First the page with its
//! passages, then its claims; a crash between them costs no second fetch. Addresses on their way are part of the
//! checkpoint, so that none is lost.

use futures_util::stream::FuturesUnordered;
use tokio::sync::OwnedMutexGuard;

use matsu_core::budget::BudgetUnit;
use matsu_core::error_code::ErrorCode;
use matsu_core::id::ClaimId;
use matsu_core::job::Priority;
use matsu_core::ports::claim_maker::{CLAIMS_PER_FRAGMENT_MAX, ClaimDraft, ClaimRequest, ModelError};
use matsu_core::ports::model_account::ModelAccount;
use matsu_core::ports::store::{
    AuthItemsOf, FragmentsOf, NewAuthItem, NewClaim, NewEvidence, NewPage, PassagesOf, ReadRules, Reservation,
    StoreError,
};
use matsu_core::principal::Principal;
use matsu_core::research::auth::AuthStatus;
use matsu_core::research::evidence::{Fragment, SourcePage};
use matsu_core::research::passages::is_near;
use matsu_core::research::quote::find_quote;

use crate::polled::Polled;
use crate::runtime::context::JobContext;

use super::model_calls;
use super::pages::{PAUSE_MAX, Reader, Reading};
use super::picking;
use super::search_job::Search;
use super::selecting::{domain_of, is_ruled_out};
use super::state::{Candidate, SearchState, Unread};
use super::stop_cause::StopCause;
use crate::runtime::ResearchKit;

/// An address that failed for a reason that may pass is tried this often.
const TRIES_MAX: u32 = 2;

/// Pages that one search fetches at the same time, each of another site.
const FETCHES_MAX: usize = 4;

impl<'a> Search<'a> {
    /// Reads until there is enough, nothing new, or nothing left. Pages of different sites are fetched at the same time;
    /// what comes is recorded one after the other.
    pub(super) async fn read_all(&mut self) -> Result<(), StopCause> {
        self.load_sketches().await?;
        let mut fetching = Polled::new(FuturesUnordered::new());
        let mut end = None;
        loop {
            if self.state.unread.is_some() {
                fetching.beside(self.make_claims()).await?;
                if self.state.novelty.look() {
                    self.is_exhausted = true;
                    end = end.or(Some(Ok(())));
                }
            }
            while end.is_none()
                && fetching.stream().len() + fetching.ready() < FETCHES_MAX
                && let Some(candidate) = self.next_to_fetch()
            {
                fetching.stream().push(self.fetch_of(candidate).run());
            }
            if let Some((candidate, fetched)) = fetching.next().await {
                self.state.fetching.retain(|under_way| under_way.hit.url != candidate.hit.url);
                if let Err(cause) = fetching.beside(self.take_in(candidate, fetched)).await {
                    // Pages that are on their way are paid for already; they are taken in before the end.
                    end = end.or(Some(Err(cause)));
                }
            } else if let Some(end) = end {
                return end;
            } else if self.state.tally.pages_fetched >= self.pages_max {
                return Ok(());
            } else if let Some(at) = self.state.next_moment() {
                return Err(StopCause::NotBefore(at));
            } else if !self.pending_items().await? {
                return Ok(());
            }
        }
    }

    /// The next address of a site that is not being asked right now, as far as pages are left.
    fn next_to_fetch(&mut self) -> Option<Candidate> {
        let under_way = u32::try_from(self.state.fetching.len()).unwrap_or(u32::MAX);
        if self.state.tally.pages_fetched.saturating_add(under_way) >= self.pages_max {
            return None;
        }
        let candidate = self.state.take_next(self.cx.runtime().clock().now())?;
        self.state.fetching.push(candidate.clone());
        Some(candidate)
    }

    fn fetch_of(&self, candidate: Candidate) -> PageFetch<'a> {
        let (owner, folders) = (self.task.owner.clone(), self.config.folders.clone());
        PageFetch { cx: self.cx, kit: self.kit, owner, folders, candidate }
    }

    /// Which passages the task has already, so that new ones are recognized.
    async fn load_sketches(&mut self) -> Result<(), StopCause> {
        let rows_max = matsu_core::limits::VERIFY_PASSAGES_MAX;
        let known = self.cx.runtime().store().run(PassagesOf { task_id: self.task.id.clone(), rows_max }).await?;
        self.sketches = known.into_iter().map(|row| row.sketch).collect();
        Ok(())
    }

    /// Records what came of an address.
    async fn take_in(&mut self, candidate: Candidate, fetched: Result<Fetched, StopCause>) -> Result<(), StopCause> {
        // The lock on the page is kept until the page is recorded: a search that waits for it finds it read.
        let (reading, reserved, _one_at_a_time) = match fetched? {
            Fetched::RuledOut => return self.give_up(None, "blocked by a rule", &candidate).await,
            Fetched::Known(page, _lock) => return self.reuse(*page, None).await,
            Fetched::Read(reading, reserved, lock) => (reading, reserved, lock),
        };
        match reading {
            Reading::Known(page) => self.reuse(*page, Some(reserved)).await,
            Reading::Fresh(page) => self.keep(*page, reserved).await,
            Reading::NeedsLogin { auth_type, url } => {
                let item = self.login(&candidate, auth_type, url);
                self.park(candidate, item, reserved).await
            }
            Reading::TooOften { until, domain, why } => {
                let later = Candidate { not_before: Some(until), tries: candidate.tries + 1, ..candidate };
                let pause = until.since(self.cx.runtime().clock().now());
                if pause > PAUSE_MAX.min(self.kit.settings.search_time_max) {
                    return self.leave_out(&later, &domain, &why, reserved).await;
                }
                self.try_later(later, &why, reserved).await
            }
            Reading::Failed(why) => {
                let later = Candidate { tries: candidate.tries + 1, ..candidate };
                self.try_later(later, &why, reserved).await
            }
            Reading::Refused(why) => self.give_up(Some(reserved), &why, &candidate).await,
        }
    }

    /// A page that was read before: nothing is spent on it.
    async fn reuse(&mut self, page: SourcePage, reserved: Option<Reservation>) -> Result<(), StopCause> {
        let fragments = self.cx.runtime().store().run(FragmentsOf(page.key())).await?;
        let mut next = self.state.clone();
        self.count_page(&mut next, &page, &fragments);
        let evidence = NewEvidence {
            reused: vec![page.id],
            spent: reserved.into_iter().map(|reserved| (reserved, 0)).collect(),
            ..NewEvidence::default()
        };
        self.record(evidence, next).await
    }

    async fn keep(&mut self, new: NewPage, reserved: Reservation) -> Result<(), StopCause> {
        let mut next = self.state.clone();
        self.count_page(&mut next, &new.page, &new.fragments);
        let evidence = NewEvidence { page: Some(new), spent: vec![(reserved, 1)], ..NewEvidence::default() };
        self.record(evidence, next).await
    }

    /// Takes note of a page and of which of its passages say something new.
    fn count_page(&mut self, next: &mut SearchState, page: &SourcePage, fragments: &[Fragment]) {
        for fragment in fragments {
            let is_new = !self.sketches.iter().any(|known| is_near(*known, fragment.sketch));
            next.novelty.note(is_new);
            if is_new {
                self.sketches.push(fragment.sketch);
                next.tally.useful_fragments += 1;
            }
        }
        next.tally.pages_fetched += 1;
        next.unread = Some(Unread { page: page.key(), domain: page.domain.clone(), is_primary: page.is_primary });
    }

    /// The claims of the page that was stored last.
    pub(super) async fn make_claims(&mut self) -> Result<(), StopCause> {
        let Some(unread) = self.state.unread.clone() else { return Ok(()) };
        if self.maker.pool().is_some() {
            let mut next = self.state.clone();
            next.unread = None;
            next.read.push(unread);
            self.record(NewEvidence::default(), next).await?;
            self.write_progress().await;
            return Ok(());
        }
        let fragments = self.cx.runtime().store().run(FragmentsOf(unread.page.clone())).await?;
        let mut next = self.state.clone();
        let mut claims = Vec::new();
        for group in fragments.chunks(self.maker.fragments_at_once().max(1)) {
            let (found, dropped) = match self.claims_of(group).await {
                Err(StopCause::ModelUnavailable { why, .. }) if self.can_do_without_model() => {
                    return self.do_without_model(&why).await;
                }
                asked => asked?,
            };
            claims.extend(found);
            next.tally.passages_dropped += dropped;
        }
        next.unread = None;
        if !claims.is_empty() {
            next.note_domain(&unread.domain, unread.is_primary);
        }
        next.tally.claims += u32::try_from(claims.len()).unwrap_or(u32::MAX);
        self.record(NewEvidence { claims, ..NewEvidence::default() }, next).await?;
        self.write_progress().await;
        Ok(())
    }

    /// What the maker makes of fragments, as far as its quotes stand there, and how many of them it made nothing usable
    /// of.
    async fn claims_of(&self, fragments: &[Fragment]) -> Result<(Vec<NewClaim>, u32), StopCause> {
        let (mut claims, mut dropped) = (Vec::new(), 0);
        for (fragment, drafts) in fragments.iter().zip(self.drafts_of(fragments).await?) {
            match drafts {
                Some(drafts) => claims.extend(self.proven(fragment, drafts)),
                None => dropped += 1,
            }
        }
        Ok((claims, dropped))
    }

    /// One list for each fragment, or nothing where the answer could not be used. An answer for several that cannot be used is asked for again one by one; one that
    /// cannot be used costs the claims of its fragment, and a model that is away costs the job.
    async fn drafts_of(&self, fragments: &[Fragment]) -> Result<Vec<Option<Vec<ClaimDraft>>>, StopCause> {
        match self.ask_for_claims(fragments).await? {
            Ok(drafts) => return Ok(drafts.into_iter().map(Some).collect()),
            Err(ModelError::Malformed(why)) => tracing::info!(%why, "a model's claims cannot be used"),
            Err(error) => return Err(model_calls::stop_cause(self.cx, error).await),
        }
        if fragments.len() == 1 {
            return Ok(vec![None]);
        }
        let mut found = Vec::new();
        for fragment in fragments {
            match self.ask_for_claims(std::slice::from_ref(fragment)).await? {
                Ok(mut drafts) => found.push(drafts.pop()),
                Err(ModelError::Malformed(why)) => {
                    tracing::info!(%why, "a model's claims were dropped");
                    found.push(None);
                }
                Err(error) => return Err(model_calls::stop_cause(self.cx, error).await),
            }
        }
        Ok(found)
    }

    async fn ask_for_claims(
        &self,
        fragments: &[Fragment],
    ) -> Result<Result<Vec<Vec<ClaimDraft>>, ModelError>, StopCause> {
        let maker = &self.maker;
        let requests: Vec<ClaimRequest> = fragments
            .iter()
            .map(|fragment| ClaimRequest {
                question: self.config.question.clone(),
                query: self.input.query.clone(),
                heading: fragment.headings.above().to_owned(),
                fragment: fragment.text.clone(),
            })
            .collect();
        let account = ModelAccount::default();
        let drafts = match maker.slot() {
            Some(slot) => self.cx.with_permit(slot, maker.claims_of(&requests, &account)).await?,
            None => maker.claims_of(&requests, &account).await,
        };
        model_calls::count(self.cx, &account).await?;
        Ok(drafts)
    }

    fn proven(&self, fragment: &Fragment, drafts: Vec<ClaimDraft>) -> Vec<NewClaim> {
        let now = self.cx.runtime().clock().now();
        let proven = drafts.into_iter().filter_map(|draft| {
            let quote = find_quote(&fragment.text, &draft.quote)?.to_owned();
            let context = fragment.headings.of_quote(&fragment.text, &quote, "").to_owned();
            Some(NewClaim {
                id: ClaimId::mint(now),
                text: draft.text.trim().to_owned(),
                quote,
                fragment_id: fragment.id.clone(),
                also: Vec::new(),
                context,
                relevance: picking::shared(&self.input.query, &draft.text),
                parts: Vec::new(),
                extraction: self.maker.extraction(),
            })
        });
        proven.filter(|claim| !claim.text.is_empty()).take(CLAIMS_PER_FRAGMENT_MAX).collect()
    }

    fn login(
        &self,
        candidate: &Candidate,
        auth_type: matsu_core::research::auth::AuthType,
        url: String,
    ) -> NewAuthItem {
        let domain = domain_of(&candidate.hit);
        let suffixes = self.kit.settings.primary_suffixes.iter().map(String::as_str);
        let is_primary = matsu_core::research::address::is_primary(&domain, suffixes);
        let now = self.cx.runtime().clock().now();
        NewAuthItem {
            domain: matsu_core::research::address::domain_of(&url).unwrap_or(domain),
            url,
            auth_type,
            priority: if is_primary { Priority::High } else { self.cx.job.priority },
            expires_at: now.plus(self.kit.settings.auth_kept),
        }
    }

    /// Leaves an address to a person and goes on with the others.
    async fn park(&mut self, candidate: Candidate, item: NewAuthItem, reserved: Reservation) -> Result<(), StopCause> {
        let mut next = self.state.clone();
        // The login is where the redirects led; that is the address a person will open.
        let mut parked = candidate;
        parked.hit.url.clone_from(&item.url);
        next.parked.push(parked);
        let evidence = NewEvidence { auth: Some(item), spent: vec![(reserved, 0)], ..NewEvidence::default() };
        self.record(evidence, next).await
    }

    async fn try_later(&mut self, candidate: Candidate, why: &str, reserved: Reservation) -> Result<(), StopCause> {
        if candidate.tries >= TRIES_MAX {
            return self.give_up(Some(reserved), why, &candidate).await;
        }
        let mut next = self.state.clone();
        next.candidates.push(candidate);
        self.record(NewEvidence { spent: vec![(reserved, 0)], ..NewEvidence::default() }, next).await
    }

    /// A site that asks for a pause which is not worth waiting for has had its turn in this search, with all its pages.
    async fn leave_out(
        &mut self,
        candidate: &Candidate,
        domain: &str,
        why: &str,
        reserved: Reservation,
    ) -> Result<(), StopCause> {
        let mut next = self.state.clone();
        let is_its =
            |other: &Candidate| matsu_core::research::address::domain_of(&other.hit.url).as_deref() == Some(domain);
        let its: Vec<Candidate> = next.candidates.extract_if(.., |other| is_its(other)).collect();
        for left_out in std::iter::once(candidate).chain(&its) {
            next.tally.pages_failed += 1;
            next.note(&format!("{}: {why}", left_out.hit.url));
        }
        self.record(NewEvidence { spent: vec![(reserved, 0)], ..NewEvidence::default() }, next).await
    }

    async fn give_up(
        &mut self,
        reserved: Option<Reservation>,
        why: &str,
        candidate: &Candidate,
    ) -> Result<(), StopCause> {
        let mut next = self.state.clone();
        next.tally.pages_failed += 1;
        next.note(&format!("{}: {why}", candidate.hit.url));
        let spent = reserved.into_iter().map(|reserved| (reserved, 0)).collect();
        self.record(NewEvidence { spent, ..NewEvidence::default() }, next).await
    }

    /// Puts addresses whose logins are done back on the list, and drops those that were skipped or expired. `false`:
    /// nothing is left to be read.
    async fn pending_items(&mut self) -> Result<bool, StopCause> {
        if self.state.parked.is_empty() {
            return Ok(false);
        }
        let logins = self.cx.runtime().store().run(AuthItemsOf(self.cx.lease.job_id.clone())).await?;
        // Of several items for one address the latest one counts.
        let status = |candidate: &Candidate| {
            logins.iter().rev().find(|login| login.url == candidate.hit.url).map(|login| login.status)
        };
        let mut next = self.state.clone();
        let (mut opened, mut still) = (Vec::new(), Vec::new());
        for candidate in std::mem::take(&mut next.parked) {
            match status(&candidate) {
                Some(AuthStatus::Completed) => opened.push(candidate),
                Some(AuthStatus::Pending) => still.push(candidate),
                Some(AuthStatus::Skipped | AuthStatus::Expired) | None => {
                    next.tally.pages_failed += 1;
                    next.note(&format!("{}: skipped, because no person logged in", candidate.hit.url));
                }
            }
        }
        next.parked = still;
        let (any_opened, any_left) = (!opened.is_empty(), !next.parked.is_empty());
        next.candidates.extend(opened);
        self.record(NewEvidence::default(), next).await?;
        match (any_opened, any_left) {
            (true, _) => Ok(true),
            (false, true) => Err(StopCause::AwaitingLogin),
            (false, false) => Ok(false),
        }
    }
}

/// One address on its way.
struct PageFetch<'a> {
    cx: &'a JobContext,
    kit: &'a ResearchKit,
    owner: Principal,
    folders: Vec<String>,
    candidate: Candidate,
}

/// What came of an address, with the lock that keeps others from fetching the same page.
enum Fetched {
    RuledOut,
    Known(Box<SourcePage>, OwnedMutexGuard<()>),
    Read(Reading, Reservation, OwnedMutexGuard<()>),
}

impl PageFetch<'_> {
    async fn run(self) -> (Candidate, Result<Fetched, StopCause>) {
        let fetched = self.fetch().await;
        (self.candidate, fetched)
    }

    async fn fetch(&self) -> Result<Fetched, StopCause> {
        let candidate = &self.candidate;
        let rules = self.cx.runtime().store().run(ReadRules(self.owner.clone())).await?;
        if is_ruled_out(&rules, &candidate.hit) {
            return Ok(Fetched::RuledOut);
        }
        // Two searches that want the same page at once: the second finds it read.
        let turnstile = self.kit.turnstile(&format!("page/{}/{}", self.owner, candidate.hit.url));
        let lock = turnstile.lock_owned().await;
        let reader = Reader { cx: self.cx, kit: self.kit, owner: &self.owner, folders: &self.folders };
        if let Some(page) = reader.known(candidate).await? {
            return Ok(Fetched::Known(Box::new(page), lock));
        }
        let reserved = match self.cx.set_aside(BudgetUnit::Pages, 1).await {
            Ok(reserved) => reserved,
            Err(StoreError::Closed { code: code @ ErrorCode::BudgetExhausted, .. }) => {
                let why = "the task's budget of pages is used up".to_owned();
                return Err(StopCause::Enough { code, why });
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Fetched::Read(reader.read(candidate).await?, reserved, lock))
    }
}
