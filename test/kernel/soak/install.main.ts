import "./fast-clock";
import "../../../installer/main";
