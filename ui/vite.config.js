import { readFileSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

/** Beside each text file its compressed twin, so that the server compresses nothing while it serves. */
function gzipped() {
  const visit = (folder) => {
    for (const name of readdirSync(folder)) {
      const path = join(folder, name);
      if (statSync(path).isDirectory()) visit(path);
      else if (/\.(js|css|html|svg|json)$/.test(name)) writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }));
    }
  };
  return { name: 'gzipped', apply: 'build', closeBundle: () => visit('dist') };
}

/** The npm packages whose code is in the page, for the list of what a release is made of. */
function bundled() {
  const names = new Set();
  return {
    name: 'bundled',
    apply: 'build',
    generateBundle(_options, bundle) {
      for (const part of Object.values(bundle)) {
        for (const [id, module] of Object.entries(part.modules ?? {})) {
          const found = /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(id);
          if (found && module.renderedLength !== 0) names.add(found[1]);
        }
      }
    },
    closeBundle: () => writeFileSync('bundled.json', `${JSON.stringify([...names].sort())}\n`),
  };
}

export default defineConfig({
  plugins: [svelte(), gzipped(), bundled()],
  build: { target: 'es2022', modulePreload: { polyfill: false }, assetsInlineLimit: 0, cssCodeSplit: true },
  server: { proxy: { '/api': { target: process.env.MATSU_ADDRESS ?? 'http://127.0.0.1:7878', changeOrigin: false } } },
});
