"""The live panel: run registry, WebSocket route, frames and the browser component."""
