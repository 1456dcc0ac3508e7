// What a statement says in a context, read from its gate as `Statement.state_in` does: no test, no rows.

const STATES = ["holds", "holds in part", "absent", "not settled", "fixed"];

// Whether some row of a context (a Map from names to labels) can be in one of the regions.
function meets(regions, context) {
  return regions.some((region) =>
    Object.entries(region).every(([name, labels]) => !context.has(name) || labels.includes(context.get(name))),
  );
}

function stateIn(statement, context) {
  if (statement.pair.some((name) => context.has(name))) return "fixed";
  if (["associated", "open"].includes(statement.kind)) return "not settled";
  if (statement.kind === "unlinked") return "absent";
  if (!statement.gate || ["linked", "differs", "determined"].includes(statement.kind)) return "holds";
  const [inside, outside] = [meets(statement.gate.linked, context), meets(statement.gate.not_linked, context)];
  if (inside && outside) return "holds in part";
  if (inside) return "holds";
  return statement.kind === "gated" ? "absent" : "not settled";
}
