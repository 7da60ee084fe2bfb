// The rules for the live panel's modules and their tests.

import js from "@eslint/js";
import globals from "globals";

const MARKUP = "Text from prompts and models must never become markup: use textContent.";
const OWN_HOST = "Nothing is fetched from another host.";

export default [
  { ignores: [".venv/", "node_modules/"] },
  js.configs.recommended,
  {
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      eqeqeq: "error",
      "no-var": "error",
      "prefer-const": "error",
      "max-lines": ["error", 300],
      complexity: ["error", 16],
      "no-restricted-properties": [
        "error",
        { property: "innerHTML", message: MARKUP },
        { property: "outerHTML", message: MARKUP },
        { property: "insertAdjacentHTML", message: MARKUP },
        { property: "setHTMLUnsafe", message: MARKUP },
        { object: "document", property: "write", message: MARKUP },
      ],
    },
  },
  {
    files: ["visuals/panel/scripts/**"],
    languageOptions: { globals: globals.browser },
    rules: {
      "no-restricted-syntax": [
        "error",
        { selector: "Literal[value=/^https?:[/][/]/]", message: OWN_HOST },
        { selector: "TemplateElement[value.raw=/^https?:[/][/]/]", message: OWN_HOST },
      ],
    },
  },
  { files: ["visuals/charts/*.js"], languageOptions: { globals: globals.browser } },
  { files: ["tests/panel/**"], languageOptions: { globals: { ...globals.node, ...globals.browser } } },
];
