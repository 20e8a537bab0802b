// Six small experiments; the numbers come from the library.
import { $, ask, complain, number, percent, settle } from "./api.js";
import { bars, heatmap, lines } from "./charts.js";

const lesson = $("lesson").dataset.lesson, slider = $("epsilon"), place = $("at");
const epsilon = () => String(Number((10 ** slider.value).toPrecision(2)));
const picture = $("picture"), second = $("second"), say = (text) => { $("meaning").textContent = text; };
const hundred = (chances) => chances.map((chance) => 100 * chance);

const show = {
  epsilon(seen) {
    bars(picture, { before: hundred(seen.without), after: hundred(seen.with), names: ["% without her", "% with her"], xLabel: "released count", yLabel: "percent" }, "Full bars: without Ada. Outlines: with her.");
    say(`No outcome is more than ${number(seen.factor, 4)} times as likely with her as without. A coin toss (50%) becomes at most ${percent(seen.certain)} sure. ${seen.promise}`);
  },
  bias(seen) {
    bars(picture, { before: hundred(seen.chances), names: ["%"], xLabel: "released count", yLabel: "percent" }, `What a true ${place.value} is released as.`);
    lines(second, { x: seen.bias.map((_, at) => at), series: [seen.bias], names: ["bias"], xLabel: "true count", yLabel: "bias" }, "The bias of each true count: how far off releases are on average.");
    say(`A true ${place.value} is released as ${number(seen.mean, 4)} on average: a bias of ${seen.here >= 0 ? "+" : ""}${number(seen.here)}.`);
  },
  solvers(seen) {
    heatmap(picture, seen.rough, "A matrix whose smallest probabilities were rounded to 0. Framed: the worst pair.", 360);
    say(`${seen.zeros} cells are 0. Claimed: ε ${number(seen.claimed)}. In truth: ${seen.realised === null ? "infinite" : number(seen.realised, 6)} (${seen.worst}). After repair and certification: ε ${number(seen.proved, 6)}, proved in integers.`);
  },
  distribution(seen) {
    bars(picture, { before: seen.before, after: seen.geometric, names: ["counties before", "after plain noise"] }, "Full bars: before. Outlines: plain geometric noise.");
    bars(second, { before: seen.before, after: seen.preserve, names: ["counties before", "after preserve"] }, "Full bars: before. Outlines: the method preserve, at the same epsilon.");
    say(`How far the histogram moved (Wasserstein distance): ${number(seen.geometric_distance)} with plain noise, ${number(seen.preserve_distance)} with preserve.`);
  },
  levels(seen) {
    bars(picture, { before: hundred(seen.near), after: hundred(seen.far), names: ["% near level", "% far level"], xLabel: "released count", yLabel: "percent" }, `Full bars: the level at ε ${number(seen.epsilons[0])}. Outlines: the level at ε ${number(seen.epsilons[1])}.`);
    say(`Drawn apart, both copies together would cost ε ${number(seen.apart)}. Drawn from each other they cost ε ${number(seen.epsilons[0])}. ${seen.holds ? "Proved in integers for every group of readers." : "This could not be proved."}`);
  },
  composition(seen) {
    lines(picture, { x: seen.times, series: [seen.added, seen.exact], names: ["added up", "composed"], xLabel: "releases", yLabel: "epsilon together" }, "Full line: added up. Dashed: composed exactly, with delta one in a million.");
    say(`${seen.chosen} releases cost ε ${number(seen.here, 4)} added up, and ε ${number(seen.here_exact, 4)} composed exactly. Within a total of ε 1 each of them may have ε ${number(seen.share, 3)}.`);
  },
};

const answer = settle(async (signal) => {
  show[lesson](await ask(`/learn/${lesson}/answer`, { epsilon: epsilon(), at: Number(place?.value ?? 0) }, $("message"), signal));
  complain("");
});
function moved() {
  $("epsilon-shown").textContent = epsilon();
  if (place) $("at-shown").textContent = place.value;
  answer();
}
slider.addEventListener("input", moved);
place?.addEventListener("input", moved);
moved();
