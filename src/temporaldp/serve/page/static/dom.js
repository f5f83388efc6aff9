// Small tools for elements.

const present = (children) =>
  children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== "");

/** An element with attributes, listeners (`on...`) and children. */
export function h(tag, attributes = {}, ...children) {
  const svg = ["svg", "rect", "line", "text", "g", "title", "path"].includes(tag);
  const made = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...present(children));
  return made;
}

/** Put other children into an element. */
export const fill = (element, ...children) => element.replaceChildren(...present(children));

/** Say something that screen readers read out without moving there. */
export function say(text) {
  document.querySelector("#spoken").textContent = text;
}

/** Give a file to whoever uses the page. */
export function download(name, content, type) {
  const address = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  const link = h("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

/** Put a text where it can be pasted from; pages without TLS on other machines have no clipboard of their own. */
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
