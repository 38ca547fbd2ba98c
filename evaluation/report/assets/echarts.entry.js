// The parts of Apache ECharts that the gallery uses. To build echarts.min.js again:
//   npm install echarts@6.1.0 esbuild
//   npx esbuild echarts.entry.js --bundle --minify --format=iife --global-name=echarts --legal-comments=none --banner:js='/*! Apache ECharts 6.1.0 (Apache-2.0), with zrender (BSD-3-Clause) */' --outfile=echarts.min.js
export { init } from "echarts/core";
import { use } from "echarts/core";
import { BarChart, CustomChart, HeatmapChart, LineChart, LinesChart, ScatterChart } from "echarts/charts";
import { GridComponent, LegendPlainComponent, MarkLineComponent, TooltipComponent, VisualMapContinuousComponent } from "echarts/components";
import { CanvasRenderer } from "echarts/renderers";
use([BarChart, CustomChart, HeatmapChart, LineChart, LinesChart, ScatterChart, GridComponent, LegendPlainComponent,
  MarkLineComponent, TooltipComponent, VisualMapContinuousComponent, CanvasRenderer]);
