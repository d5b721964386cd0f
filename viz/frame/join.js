// Joining: every module of the page says by name what it offers the others and what it needs of them. What does not fit
// together is an error here, before the first frame, and not at a click.
//
// A module is { name, offers, needs, join }, where join(stage) is called once. `stage` holds what the module needs, and nothing
// else; what join returns holds what the module offers, and the hooks that page.js names. Offers are read when they are used, so
// that modules may need each other; only what join itself uses has to come from a module that stands earlier in the list.

// join joins the modules. core is what they may need besides each other's offers; its own properties are its offers. It returns
// {stage, parts}: everything that is offered, as one object, and what the modules returned, in order.
export function join(core, modules) {
  const owners = new Map(Object.keys(core).map((name) => [name, "page"]));
  const made = new Map([["page", core]]);
  for (const { name, offers = [] } of modules) {
    for (const offer of offers) {
      if (owners.has(offer)) throw new Error(`${name} offers ${offer}, which ${owners.get(offer)} offers already`);
      owners.set(offer, name);
    }
  }

  // faceOf returns the part of the whole that a module declared to need.
  function faceOf(module, needs) {
    const face = {};
    for (const need of needs) {
      const owner = owners.get(need);
      if (!owner) throw new Error(`${module} needs ${need}, which no module offers`);
      Object.defineProperty(face, need, {
        enumerable: true,
        get() {
          if (!made.has(owner)) throw new Error(`${module} uses ${need} before ${owner} has joined`);
          return made.get(owner)[need];
        },
      });
    }
    return new Proxy(face, {
      get(target, name) {
        if (typeof name === "string" && !(name in target)) throw new Error(`${module} uses ${name}, and does not declare that it needs it`);
        return target[name];
      },
      set(target, name) {
        throw new Error(`${module} sets ${String(name)}: a module returns what it offers`);
      },
    });
  }

  const faces = modules.map(({ name, needs = [] }) => faceOf(name, needs)); // all of them, before any module does anything
  const parts = modules.map((module, i) => {
    const part = module.join(faces[i]) ?? {};
    for (const offer of module.offers ?? []) {
      if (!(offer in part)) throw new Error(`${module.name} does not return ${offer}, which it offers`);
    }
    made.set(module.name, part);
    return part;
  });
  return { stage: faceOf("page", owners.keys()), parts };
}
