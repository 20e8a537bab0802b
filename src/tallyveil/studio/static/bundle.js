// Files and folders that are dropped, sent one by one into a bundle of their own.
import { $, complain, post, put } from "./api.js";

async function collect(entry, before = "") {
  if (entry.isFile) return [{ name: before + entry.name, file: await new Promise((done, fail) => entry.file(done, fail)) }];
  const reader = entry.createReader(), found = [];
  for (;;) {
    const part = await new Promise((done, fail) => reader.readEntries(done, fail));
    if (!part.length) return (await Promise.all(found.map((inner) => collect(inner, `${before}${entry.name}/`)))).flat();
    found.push(...part);
  }
}

export function onDrop(open) {
  const drop = $("drop"), progress = $("progress");
  async function send(files) {
    if (!files.length) return;
    complain("");
    progress.hidden = false;
    progress.value = 0;
    try {
      const { bundle } = await post("/bundles");
      for (const [at, { name, file }] of files.entries()) {
        await put(`/bundles/${bundle}/files`, file, name, {}, (share) => { progress.value = (at + share) / files.length; });
      }
      await open(bundle, files.length === 1 ? files[0].name : files[0].name.split("/")[0]);
    } catch (problem) {
      complain(problem.message);
    } finally {
      progress.hidden = true;
    }
  }
  const given = (list) => [...list].map((file) => ({ name: file.webkitRelativePath || file.name, file }));
  $("file").addEventListener("change", (event) => send(given(event.target.files)));
  $("folder-pick").addEventListener("change", (event) => send(given(event.target.files)));
  for (const name of ["file", "folder-pick"]) // chosen before this script was there
    if ($(name).files.length) send(given($(name).files));
  for (const kind of ["dragover", "dragleave", "drop"]) drop.addEventListener(kind, async (event) => {
    event.preventDefault();
    drop.classList.toggle("over", kind === "dragover");
    if (kind !== "drop") return;
    const entries = [...event.dataTransfer.items].map((item) => item.webkitGetAsEntry()).filter(Boolean);
    send((await Promise.all(entries.map((entry) => collect(entry)))).flat());
  });
  for (const button of document.querySelectorAll("[data-folder]")) {
    const press = async () => {
      complain("");
      try {
        await open((await post("/bundles", { folder: button.dataset.folder })).bundle, button.dataset.folder);
      } catch (problem) {
        complain(problem.message);
      }
    };
    button.addEventListener("click", press);
    if ("now" in button.dataset) press();
  }
}
