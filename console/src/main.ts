// Mounts the console.
import { mount } from "svelte";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/layout.css";
import App from "./App.svelte";
import { applyTheme } from "./lib/theme.svelte";

applyTheme();
const target = document.getElementById("app");
if (target) mount(App, { target });
