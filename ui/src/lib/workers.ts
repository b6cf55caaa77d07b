/** Addresses of scripts that run beside the page. The page's policy takes them from one named place only. */

interface Policy { createScriptURL(url: string): string }
interface Factory { createPolicy(name: string, rules: Policy): Policy }

/** A policy of a name can be made once per page. */
let policy: Policy | null | undefined;

/** The address as the browser takes it for a worker. */
export function scriptAddress(address: string): string {
  const factory = (globalThis as unknown as { trustedTypes?: Factory }).trustedTypes;
  policy ??= factory?.createPolicy('matsu-worker', { createScriptURL: (url) => (new URL(url, location.href).origin === location.origin ? url : '') }) ?? null;
  return policy ? policy.createScriptURL(address) : address;
}
