// The states of a cell over letters: what the running lab answers, as one graph for each cell.

import { numbers, open } from "./graph.js";

const LETTERS = "abcd";
const STATE = 8;
const PARAMETERS = { tanh: [104, 112], relu: [104, 112], gru: [312, 336], lstm: [416, 448] };
