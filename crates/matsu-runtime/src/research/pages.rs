//! One page: from an address to passages. Follows redirects itself, so that rules, turns and limits hold on every hop.

use std::time::Duration;

use matsu_core::clock::Timestamp;
use matsu_core::id::{FragmentId, PageId};
use matsu_core::limits::{RATE_LIMITED_PAUSE, REDIRECTS_MAX};
use matsu_core::ports::extractor::ExtractError;
use matsu_core::ports::fetcher::{FetchError, FetchMeans, FetchOutcome, FetchRequest, FetchedPage};
use matsu_core::ports::store::{HoldTurns, NewPage, PageByUrl, ReadRules, StoreError, TakeDaily, TakeTurn};
use matsu_core::principal::Principal;
use matsu_core::research::address;
use matsu_core::research::auth::AuthType;
use matsu_core::research::document::Document;
use matsu_core::research::domain_rule::is_blocked;
use matsu_core::research::evidence::{Fragment, PageOrigin, SourcePage};
use matsu_core::research::fingerprint::fingerprint;
use matsu_core::research::passages::passages;
use matsu_core::research::query::fold;
use matsu_core::slot::Slot;

use crate::runtime::context::JobContext;

use super::selecting::domain_of;
use super::state::Candidate;
use crate::runtime::ResearchKit;

/// A site that asks for a longer pause is left out of the search.
pub const PAUSE_MAX: Duration = Duration::from_secs(60);

/// What came of an address.
pub enum Reading {
    /// Read just now.
    Fresh(Box<NewPage>),
    /// Known already, and still good.
    Known(Box<SourcePage>),
    /// A person must log in, at this address.
    NeedsLogin { auth_type: AuthType, url: String },
    /// Its site, which counts as this domain, said "too often".
    TooOften { until: Timestamp, domain: String, why: String },
    /// It may work another time.
    Failed(String),
    /// It will not work.
    Refused(String),
}

/// Whose page it is to be, and where its owner lets us look.
pub struct Reader<'a> {
    pub cx: &'a JobContext,
    pub kit: &'a ResearchKit,
    pub owner: &'a Principal,
    pub folders: &'a [String],
}

impl Reader<'_> {
    /// The page if it is known and young enough, and has no owner or belongs to the reader.
    pub async fn known(&self, candidate: &Candidate) -> Result<Option<SourcePage>, StoreError> {
        let page = self
            .cx
            .runtime()
            .store()
            .run(PageByUrl { reader: self.owner.clone(), url: candidate.hit.url.clone() })
            .await?;
        let now = self.cx.runtime().clock().now();
        // A document on this machine may have changed a moment ago, and asking costs nothing.
        let is_young = |page: &SourcePage| {
            page.origin != PageOrigin::Local && now.since(page.fetched_at) < self.kit.settings.page_cache_kept
        };
        Ok(page.filter(is_young))
    }

    /// Reads an address that is not known. Something was set aside for it already.
    pub async fn read(&self, candidate: &Candidate) -> Result<Reading, StoreError> {
        if let Some(text) = &candidate.hit.abstract_text {
            return Ok(self.as_engine_gave_it(candidate, text));
        }
        let older = self
            .cx
            .runtime()
            .store()
            .run(PageByUrl { reader: self.owner.clone(), url: candidate.hit.url.clone() })
            .await?;
        let mut request = FetchRequest {
            url: candidate.hit.url.clone(),
            engines: candidate.engines.clone(),
            owner: self.owner.clone(),
            folders: self.folders.to_vec(),
            etag: older.as_ref().and_then(|page| page.etag.clone()),
            last_modified: older.as_ref().and_then(|page| page.last_modified.clone()),
        };
        // Once cookies have led somewhere, the page is theirs: an address without cookies may carry the right in itself.
        let mut is_private = false;
        for _ in 0..=REDIRECTS_MAX {
            let outcome = match self.one_request(&request).await? {
                Ok(outcome) => outcome,
                Err(error) => return self.failed(&request.url, error).await,
            };
            match outcome {
                FetchOutcome::Page(mut page) => {
                    page.is_private |= is_private;
                    // Looking at a document of this machine costs nothing; one that is as it was is no new page.
                    let is_same = |older: &SourcePage| {
                        page.origin == PageOrigin::Local
                            && older.origin == PageOrigin::Local
                            && older.content_hash == fingerprint(&page.body)
                    };
                    return match older.filter(is_same) {
                        Some(older) => Ok(Reading::Known(Box::new(older))),
                        None => Ok(self.extract(candidate, *page).await),
                    };
                }
                FetchOutcome::NotModified => {
                    return Ok(older.map_or_else(
                        || Reading::Failed("the server sent status 304, but no earlier copy is stored".to_owned()),
                        |page| Reading::Known(Box::new(page)),
                    ));
                }
                FetchOutcome::NeedsAuth { auth_type } => {
                    return Ok(Reading::NeedsLogin { auth_type, url: request.url });
                }
                FetchOutcome::NeedsScripts => return Ok(Reading::Refused("it needs a browser".to_owned())),
                FetchOutcome::Redirect { to, is_private: used_cookies } => match address::canonical(&to) {
                    Some(to) => {
                        is_private |= used_cookies;
                        request = FetchRequest { url: to, etag: None, last_modified: None, ..request };
                    }
                    None => {
                        return Ok(Reading::Refused("it redirects to an address that is not a web page".to_owned()));
                    }
                },
            }
        }
        Ok(Reading::Refused(format!("more than {REDIRECTS_MAX} redirects")))
    }

    /// One hop, in its turn. The browser is tried only where plain reading brought an empty frame.
    async fn one_request(&self, request: &FetchRequest) -> Result<Result<FetchOutcome, FetchError>, StoreError> {
        let (store, clock) = (self.cx.runtime().store(), self.cx.runtime().clock());
        // Rules are read for every hop: what a person blocks takes effect at once.
        let rules = store.run(ReadRules(self.owner.clone())).await?;
        let host = address::host(&request.url).unwrap_or_default();
        if is_blocked(&rules, &host) {
            return Ok(Err(FetchError::Refused(format!("{host} is blocked by a rule"))));
        }
        let clearance = match self.kit.fetcher.clearance(request).await {
            Ok(clearance) => clearance,
            Err(error) => return Ok(Err(error)),
        };
        if clearance.step == Duration::ZERO {
            return self.fetch(request).await;
        }
        let domain = address::registrable(&host);
        if let Some(uses_max) = clearance.daily_max
            && !store.run(TakeDaily { key: format!("fetch/{domain}"), uses_max, now: clock.now() }).await?
        {
            return Ok(Err(FetchError::Refused(format!(
                "{domain} has reached its limit of {uses_max} requests for today"
            ))));
        }
        let key = turn_key(&request.url);
        let turnstile = self.kit.turnstile(&key);
        let _one_at_a_time = turnstile.lock().await;
        let step_ms = i64::try_from(clearance.step.as_millis()).unwrap_or(i64::MAX);
        let turn = store.run(TakeTurn { key: key.clone(), step_ms, now: clock.now() }).await?;
        let wait = turn.since(clock.now());
        if wait > PAUSE_MAX.max(clearance.step) {
            // Its site asked for this earlier; a search that holds a permit does not wait for it here.
            return Ok(Err(FetchError::RateLimited { retry_after: Some(wait) }));
        }
        clock.sleep(wait).await;
        let fetched = self.fetch(request).await;
        // When the request arrived there is not known, but not after it was answered: counted from now the step is
        // kept.
        store.run(HoldTurns { key: key.clone(), until: clock.now().plus(clearance.step) }).await?;
        fetched
    }

    async fn fetch(&self, request: &FetchRequest) -> Result<Result<FetchOutcome, FetchError>, StoreError> {
        match self.kit.fetcher.fetch(request, FetchMeans::Http).await {
            Ok(FetchOutcome::NeedsScripts) if self.kit.fetcher.has_browser() => {
                self.cx.with_permit(Slot::Browser, self.kit.fetcher.fetch(request, FetchMeans::Browser)).await
            }
            outcome => Ok(outcome),
        }
    }

    async fn failed(&self, url: &str, error: FetchError) -> Result<Reading, StoreError> {
        let clock = self.cx.runtime().clock();
        Ok(match error {
            FetchError::RateLimited { retry_after } => {
                let until = clock.now().plus(retry_after.unwrap_or(RATE_LIMITED_PAUSE));
                // For all requests to this site.
                self.cx.runtime().store().run(HoldTurns { key: turn_key(url), until }).await?;
                let why = retry_after.map_or_else(
                    || "429, and named no time to wait".to_owned(),
                    |pause| format!("429, asked to wait {} s", pause.as_secs_f64().ceil()),
                );
                Reading::TooOften { until, domain: address::domain_of(url).unwrap_or_default(), why }
            }
            FetchError::Failed(why) => Reading::Failed(why),
            // Of a file it is the file that is refused: too large, not open to us.
            FetchError::Refused(why) if url.starts_with("file:") => Reading::Refused(why),
            FetchError::Refused(_) | FetchError::Robots | FetchError::Status(_) | FetchError::TooLarge => {
                Reading::Refused(error.to_string())
            }
        })
    }

    fn as_engine_gave_it(&self, candidate: &Candidate, text: &str) -> Reading {
        let hit = &candidate.hit;
        let document = Document {
            title: hit.title.clone(),
            text: text.to_owned(),
            year: hit.year,
            authors: hit.authors.clone(),
            doi: hit.doi.clone(),
            ..Document::default()
        };
        let page = FetchedPage {
            url: hit.url.clone(),
            body: text.as_bytes().to_vec(),
            media_type: "text/plain".to_owned(),
            etag: None,
            last_modified: None,
            origin: PageOrigin::Engine,
            is_private: false,
            domain: None,
        };
        let meta = Meta::of(&page);
        self.page(candidate, meta, document)
    }

    async fn extract(&self, candidate: &Candidate, page: FetchedPage) -> Reading {
        let meta = Meta::of(&page);
        match self.kit.extractor.extract(page).await {
            Ok(document) => self.page(candidate, meta, document),
            Err(ExtractError::Unavailable(why)) => Reading::Failed(why),
            Err(error) => Reading::Refused(error.to_string()),
        }
    }

    fn page(&self, candidate: &Candidate, meta: Meta, document: Document) -> Reading {
        let document = document.with_marks();
        let now = self.cx.runtime().clock().now();
        let id = PageId::mint(now);
        let fragments = passages(&document).into_iter().enumerate().map(|(position, passage)| Fragment {
            id: FragmentId::mint(now),
            page_id: id.clone(),
            position: u32::try_from(position).unwrap_or(u32::MAX),
            hash: fingerprint(&passage.text),
            text: passage.text,
            headings: passage.headings,
            offset: passage.offset,
            sketch: passage.sketch,
        });
        let fragments: Vec<Fragment> = fragments.collect();
        if fragments.is_empty() {
            return Reading::Refused("no text".to_owned());
        }
        let host = address::host(&meta.url).unwrap_or_default();
        // A document of this machine counts as where it says it comes from: its site, or else its author.
        let is_local = meta.origin == PageOrigin::Local;
        let declared = document.declared_url.as_deref().filter(|_| is_local).and_then(address::domain_of);
        let author = document.authors.first().filter(|_| is_local).map(|author| format!("author:{}", fold(author)));
        let domain = declared.or(author).or(meta.domain).or_else(|| candidate.hit.domain.clone());
        let domain = domain.or_else(|| address::domain_of(&meta.url)).unwrap_or_else(|| domain_of(&candidate.hit));
        let suffixes = self.kit.settings.primary_suffixes.iter().map(String::as_str);
        let is_primary = address::is_primary(&host, suffixes.clone()) || address::is_primary(&domain, suffixes);
        let hit = &candidate.hit;
        let page = SourcePage {
            id,
            url: hit.url.clone(),
            final_url: meta.url,
            domain,
            owner: meta.is_private.then(|| self.owner.clone()),
            origin: meta.origin,
            title: if document.title.is_empty() { hit.title.clone() } else { document.title },
            language: document.language,
            year: document.year.or(hit.year),
            doi: document.doi.or_else(|| hit.doi.clone()),
            authors: if document.authors.is_empty() { hit.authors.clone() } else { document.authors },
            is_primary,
            content_hash: meta.content_hash,
            etag: meta.etag,
            last_modified: meta.last_modified,
            fetched_at: now,
        };
        Reading::Fresh(Box::new(NewPage { page, fragments }))
    }
}

fn turn_key(url: &str) -> String {
    format!("fetch/{}", address::domain_of(url).unwrap_or_default())
}

/// What is known of a page before its text.
struct Meta {
    url: String,
    content_hash: String,
    etag: Option<String>,
    last_modified: Option<String>,
    origin: PageOrigin,
    is_private: bool,
    domain: Option<String>,
}

impl Meta {
    fn of(page: &FetchedPage) -> Self {
        Self {
            url: page.url.clone(),
            content_hash: fingerprint(&page.body),
            etag: page.etag.clone(),
            last_modified: page.last_modified.clone(),
            origin: page.origin,
            is_private: page.is_private,
            domain: page.domain.clone(),
        }
    }
}
