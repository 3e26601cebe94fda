import "./fast-clock";
import "../../../controllers/repair/main";
