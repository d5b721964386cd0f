// Tokens: what an event looks like. The shape is its type, the colour is what becomes of it.

// shapeOf names the shape for an event's type, in either half's words.
export function shapeOf(type) {
  switch ((type ?? "").toUpperCase()) {
    case "ADDED":
      return "added";
    case "MODIFIED":
    case "UPDATED":
      return "modified";
    case "DELETED":
      return "deleted";
    case "BOOKMARK":
      return "bookmark";
    case "ERROR":
      return "error";
    default:
      return "synthetic"; // Sync, Replaced, and moments that say nothing of a type
  }
}

// outline traces a shape of about 16 units around the origin.
export function outline(ctx, shape) {
  ctx.beginPath();
  switch (shape) {
    case "modified":
      ctx.roundRect(-7.5, -7.5, 15, 15, 3);
      break;
    case "deleted":
      ctx.moveTo(-3.5, -8);
      for (const [x, y] of [[3.5, -8], [8, -3.5], [8, 3.5], [3.5, 8], [-3.5, 8], [-8, 3.5], [-8, -3.5]]) ctx.lineTo(x, y);
      ctx.closePath();
      break;
    case "bookmark":
      ctx.moveTo(0, -9);
      for (const [x, y] of [[8, 0], [0, 9], [-8, 0]]) ctx.lineTo(x, y);
      ctx.closePath();
      break;
    case "error":
      ctx.moveTo(0, -9);
      for (const [x, y] of [[9, 8], [-9, 8]]) ctx.lineTo(x, y);
      ctx.closePath();
      break;
    default:
      ctx.arc(0, 0, 8, 0, 2 * Math.PI);
  }
}

// sign traces what stands inside a shape, so that no viewer has to tell them apart by colour.
export function sign(ctx, shape) {
  ctx.beginPath();
  switch (shape) {
    case "added":
      ctx.moveTo(-4, 0);
      ctx.lineTo(4, 0);
      ctx.moveTo(0, -4);
      ctx.lineTo(0, 4);
      break;
    case "modified":
      ctx.moveTo(-4, 1.5);
      ctx.bezierCurveTo(-2, -3, 0, -2, 0, 0);
      ctx.bezierCurveTo(0, 2, 2, 3, 4, -1.5);
      break;
    case "deleted":
      ctx.moveTo(-4, 0);
      ctx.lineTo(4, 0);
      break;
    case "error":
      ctx.moveTo(0, -3.5);
      ctx.lineTo(0, 3);
      ctx.moveTo(0, 5);
      ctx.lineTo(0, 6);
      break;
  }
}
