// Builds `dist`, which the server embeds. `npm run dev` serves the sources and proxies API requests to a running server.
import { svelte } from "@sveltejs/vite-plugin-svelte";
import { defineConfig } from "vite";
import { builtFrom } from "./built-from";

const server = process.env.HOMEPORT_URL ?? "http://127.0.0.1:8080";

export default defineConfig({
  plugins: [svelte(), builtFrom()],
  build: {
    target: "es2022",
    // The content security policy forbids data: URLs.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: {
    proxy: {
      // The server accepts changes only from its own origin, so the proxy sends that origin.
      "/v1": { target: server, changeOrigin: true, headers: { origin: server } },
      "/openapi.json": { target: server, changeOrigin: true },
      "/docs": { target: server, changeOrigin: true },
    },
  },
});
