// The entrance of a copy: into the language that was chosen, or the first of the browser's that there is.
(() => {
  const { opens } = document.documentElement.dataset;
  const asked = navigator.languages.map((each) => each.slice(0, 2));
  const language = opens ?? asked.find((each) => ["en", "ko"].includes(each)) ?? "en";
  location.replace(`${language}/${location.search}`);
})();
