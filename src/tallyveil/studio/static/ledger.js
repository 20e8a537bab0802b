// The ledger's buttons.
import { $, onPress, post } from "./api.js";

const go = (answer) => location.assign(answer.next);
onPress($("create"), async () => go(await post("/ledger/create", { name: $("name").value.trim() })));
onPress($("open"), async () => go(await post("/ledger/open", { dataset: $("dataset").value.trim(), epsilon: $("total").value.trim() })));
onPress($("verify"), async () => {
  const found = await post("/ledger/verify"), verdict = $("verdict");
  verdict.className = found.ok ? "good" : "bad";
  verdict.textContent = `${found.ok ? "✓ The chain holds: " : "✗ The chain does NOT hold: "}${found.detail}`;
  verdict.hidden = false;
});
