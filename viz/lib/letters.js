// Letters: short texts for canvases, each drawn once and stamped from then on. A canvas of the document that writes or
// measures a text has the browser style and lay out the whole page before it does; a canvas outside of it has not.

const most = 300; // texts kept

// newLetters returns a kind of lettering: look() says its {font, height, ink, halo, scale}, asked again after forget().
// Without a halo there is no outline.
export function newLetters(look) {
  const images = new Map(); // by text: {canvas, w, h}
  let made = null; // the look

  function imageOf(text) {
    const known = images.get(text);
    if (known) return known;
    made ??= look();
    if (images.size >= most) images.clear();
    const canvas = document.createElement("canvas");
    const ctx = canvas.getContext("2d");
    ctx.font = made.font;
    const [w, margin, h] = [ctx.measureText(text).width, 3, made.height];
    canvas.width = Math.ceil((w + 2 * margin) * made.scale);
    canvas.height = Math.ceil(h * made.scale);
    ctx.setTransform(made.scale, 0, 0, made.scale, margin * made.scale, 0);
    ctx.font = made.font; // a canvas that is given a size forgets it
    ctx.textBaseline = "middle";
    if (made.halo) {
      ctx.lineWidth = 4;
      ctx.lineJoin = "round";
      ctx.strokeStyle = made.halo;
      ctx.strokeText(text, 0, h / 2);
    }
    ctx.fillStyle = made.ink;
    ctx.fillText(text, 0, h / 2);
    const image = {
      canvas, w,
      draw: (on, left, middle) => on.drawImage(canvas, left - margin, middle - h / 2, canvas.width / made.scale, h),
    };
    images.set(text, image);
    return image;
  }

  return { of: imageOf, forget: () => (images.clear(), (made = null)) };
}
