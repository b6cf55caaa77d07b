/** Shapes of the research tools. */

/** What one search takes at most. */
const QUERY_CHARS_MAX = 500;

/** What is searched for by default: the question, as far as a search takes it. */
export function queryOf(question: string): string {
  const chars = [...question.trim()];
  if (chars.length <= QUERY_CHARS_MAX) return chars.join('');
  const head = chars.slice(0, QUERY_CHARS_MAX).join('');
  const cut = head.search(/\s\S*$/);
  return (cut > 0 ? head.slice(0, cut) : head).trimEnd();
}

export interface Search {
  id: string; query: string; status: string; pages_fetched?: number; useful_fragments?: number; satisfaction_score?: number;
  has_primary_source?: boolean; engines?: string[]; engines_failed?: string[]; skipped?: string[]; error_code?: string | null;
}
export interface ResearchStatus {
  status: string; query: string; revision: number;
  searches?: Search[];
  queue?: { depth: number; running: number; items: { id: string; query: string; status: string; progress?: string | null }[] };
  metrics?: { total_searches: number; satisfied_count: number; total_pages: number; total_fragments: number; total_claims: number };
  budget?: { pages_used: number; pages_limit: number; time_used_seconds: number; time_limit_seconds: number; remaining_percent: number; model_tokens?: number; model_cost?: number };
  auth_queue?: { pending_count: number; high_priority_count: number };
  warnings?: (string | { message?: string })[];
}
export interface Evidence {
  edge_id: string; relation: 'supports' | 'refutes' | 'neutral'; probability: number; fragment_id: string; url: string;
  title?: string; domain?: string; is_primary?: boolean; year?: number;
}
export interface Claim {
  id: string; text: string; confidence?: number; uncertainty?: number; controversy?: number; evidence_count: number; has_refutation?: boolean;
  adoption?: string; origin?: { edge_id?: string; fragment_id?: string; quote?: string; url?: string; title?: string; domain?: string; is_primary?: boolean }; evidence?: Evidence[];
}
export interface Fragment { id: string; text: string; heading?: string | null; page_id?: string; url?: string; offset?: number }
export interface Materials {
  claims: Claim[]; fragments?: Fragment[]; total: number; next_cursor?: string | null;
}

export interface Sentence { text: string; below?: string; claim_ids: string[]; citations: number[]; verification: string; confidence?: number }
export interface Citation {
  number: number; quote: string; fragment_id: string; heading: string; passage: number; url: string; title: string; source: string;
}
export interface Searched {
  query: string; status: string; engines: string[]; engines_failed?: string[]; pages_read: number; pages_failed: number;
  pages_left: number; claims: number; error?: string; skipped?: string[];
}
export interface Report {
  question: string; method: 'extractive' | 'model'; model?: string; answer: Sentence[]; sections: { title: string; sentences: Sentence[] }[];
  contested: { text: string; claim_id: string; supported_by: number[]; refuted_by: number[]; confidence?: number }[];
  not_found: string[]; searched: Searched[]; read: { url: string; title: string }[]; citations: Citation[];
  sentences_removed: number; claims_used: number; claims_total: number; notes: string[];
}
export interface ReportFile { name: string; media_type: string; text: string }
export interface PassageInContext {
  fragment_id: string; url: string; title: string; heading: string; passage: number; before: string; after: string;
  pieces: { text: string; is_quoted: boolean }[];
}
