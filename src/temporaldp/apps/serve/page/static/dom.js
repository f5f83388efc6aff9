// Elements of the page.

const present = (children) =>
  children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== "");

/** An element with attributes, listeners (`on...`) and children. */
export function h(tag, attributes = {}, ...children) {
  const kind = ["svg", "rect", "text", "g", "title", "path"].includes(tag) ? "2000/svg" : "1999/xhtml";
  const made = document.createElementNS(`http://www.w3.org/${kind}`, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...present(children));
  return made;
}

/** Replace the children of an element. */
export const fill = (element, ...children) => element.replaceChildren(...present(children));

/** A live region that screen readers read out. */
export function say(text) {
  document.querySelector("#spoken").textContent = text;
}

/** Save a file. */
export function download(name, content, type) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = h("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Copy a text; pages without TLS on other machines have no clipboard API. */
export async function copy(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  const field = h("textarea", { class: "spoken", "aria-hidden": "true" }, text);
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}
