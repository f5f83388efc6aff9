// A drawing is a list of shapes; it becomes an SVG document or pixels.

const FONT = "Inter, 'DejaVu Sans', system-ui, sans-serif";
const escaped = (text) =>
  String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const short = (number) => Number(number.toFixed(2));

/** A curve through points [[x, y], ...]. */
export const curve = (points, colour, width = 1, dash = []) => ({ kind: "curve", points, colour, width, dash });
/** A filled box. */
export const box = (x, y, width, height, colour) => ({ kind: "box", x, y, width, height, colour });
/** A line of text; `anchor` is start, middle or end; `turned` reads upwards. */
export const text = (x, y, words, colour, { size = 12, anchor = "start", bold = false, turned = false } = {}) => ({
  kind: "text",
  x,
  y,
  words,
  colour,
  size,
  anchor,
  bold,
  turned,
});

/** An SVG document. */
export function svg(shapes, width, height, title) {
  const drawn = shapes.map((shape) => {
    if (shape.kind === "box") {
      const { x, y, width: w, height: t, colour } = shape;
      return `<rect x="${short(x)}" y="${short(y)}" width="${short(w)}" height="${short(t)}" fill="${colour}"/>`;
    }
    if (shape.kind === "curve") {
      const dash = shape.dash.length ? ` stroke-dasharray="${shape.dash.join(" ")}"` : "";
      const points = shape.points.map(([x, y]) => `${short(x)},${short(y)}`).join(" ");
      return `<polyline points="${points}" fill="none" stroke="${shape.colour}" stroke-width="${shape.width}"${dash}/>`;
    }
    const turn = shape.turned ? ` transform="rotate(-90 ${short(shape.x)} ${short(shape.y)})"` : "";
    const weight = shape.bold ? ' font-weight="600"' : "";
    return `<text x="${short(shape.x)}" y="${short(shape.y)}" font-size="${shape.size}" text-anchor="${shape.anchor}" fill="${shape.colour}"${weight}${turn}>${escaped(shape.words)}</text>`;
  });
  const head = `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" font-family="${FONT}" role="img">`;
  return [head, `<title>${escaped(title)}</title>`, ...drawn, "</svg>", ""].join("\n");
}

/** A PNG, with `density` pixels a unit. */
export function png(shapes, width, height, density = 2) {
  const canvas = document.createElement("canvas");
  canvas.width = width * density;
  canvas.height = height * density;
  const to = canvas.getContext("2d");
  to.scale(density, density);
  for (const shape of shapes) {
    to.fillStyle = to.strokeStyle = shape.colour;
    if (shape.kind === "box") to.fillRect(shape.x, shape.y, shape.width, shape.height);
    else if (shape.kind === "curve") {
      to.lineWidth = shape.width;
      to.setLineDash(shape.dash);
      to.beginPath();
      shape.points.forEach(([x, y], k) => (k ? to.lineTo(x, y) : to.moveTo(x, y)));
      to.stroke();
    } else {
      to.save();
      to.translate(shape.x, shape.y);
      if (shape.turned) to.rotate(-Math.PI / 2);
      to.font = `${shape.bold ? "600 " : ""}${shape.size}px ${FONT}`;
      to.textAlign = shape.anchor === "middle" ? "center" : shape.anchor;
      to.fillText(shape.words, 0, 0);
      to.restore();
    }
  }
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}
