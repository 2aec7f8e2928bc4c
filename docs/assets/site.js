/* The run on the home page wears the colours that the reader chose for the site. */
document$.subscribe(() => {
  const frame = document.querySelector("iframe.run");
  if (!frame) return;
  const dress = () => {
    const dark = document.body.getAttribute("data-md-color-scheme") === "slate";
    frame.src = frame.src.split("#")[0] + "#small," + (dark ? "dark" : "light");
  };
  new MutationObserver(dress).observe(document.body, {attributeFilter: ["data-md-color-scheme"]});
  dress();
});
