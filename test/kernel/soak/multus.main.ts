import "./fast-clock";
import "../../../controllers/multus/main";
