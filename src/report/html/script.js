(() => {
  const list = document.querySelectorAll(".finding");
  const place = document.getElementById("filters");
  if (list.length < 2 || !place) return;
  const label = (text, control) => { const l = document.createElement("label"); l.append(text + " ", control); place.append(l); return control; };
  const words = label("Find", Object.assign(document.createElement("input"), { type: "search" }));
  const level = label("Severity", document.createElement("select"));
  for (const name of ["all", "high", "medium", "low"]) level.append(new Option(name, name));
  const count = document.createElement("span");
  count.setAttribute("role", "status");
  place.append(count);
  const texts = new Map();
  let timer;
  const apply = () => {
    const wanted = words.value.toLowerCase();
    let shown = 0;
    for (const d of list) {
      if (wanted && !texts.has(d)) texts.set(d, d.textContent.toLowerCase());
      const fits = (level.value === "all" || d.classList.contains(level.value)) && (!wanted || texts.get(d).includes(wanted));
      d.hidden = !fits;
      if (fits) shown++;
    }
    count.textContent = shown + " of " + list.length + " shown";
  };
  const later = () => { clearTimeout(timer); timer = setTimeout(apply, 150); };
  words.addEventListener("input", later);
  level.addEventListener("change", apply);
  const open = () => { const d = document.getElementById(location.hash.slice(1)); if (d && d.tagName === "DETAILS") { d.open = true; d.scrollIntoView(); } };
  addEventListener("hashchange", open);
  open();
  addEventListener("beforeprint", () => { if (list.length <= 100) for (const d of list) if (d.tagName === "DETAILS") d.open = true; });
})();
