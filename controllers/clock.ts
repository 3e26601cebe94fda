export { type Clock, systemClock } from "../process/clock";
