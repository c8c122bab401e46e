package tradeoff

import (
	"fmt"
	"html"
	"math"
	"slices"
	"strings"
)

// Plot is what a drawing says beside its points.
type Plot struct {
	Title  string
	Loss   string  // what the vertical axis shows: "accuracy drop, %"
	Scale  float64 // that Loss of points is multiplied by; 0 means 1
	Chosen int     // index of a point; -1 for none
}

// The drawing, in pixels.
const (
	plotWidth, plotHeight  = 760, 480
	left, right, top, base = 70, 150, 40, 50
)

// SVG draws median latency, to a logarithmic scale, against loss. The area of a point
// grows with the engine's size; points of the front are joined, those that do not keep the
// limits are hollow. The same points give the same bytes.
func (pl Plot) SVG(points []Point) []byte {
	if pl.Scale == 0 {
		pl.Scale = 1
	}
	x, xTicks := logAxis(points)
	y, yTicks := lossAxis(points, pl.Scale)
	var b strings.Builder
	fmt.Fprintf(&b,
		`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		plotWidth, plotHeight, plotWidth, plotHeight)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="#fff"/>`+"\n"+`<text x="%d" y="24" font-size="15">%s</text>`+"\n",
		left, html.EscapeString(pl.Title))
	for _, t := range xTicks {
		fmt.Fprintf(&b, `<path d="M%.1f %dV%d" stroke="#ddd"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n",
			x(t), top, plotHeight-base, x(t), plotHeight-base+18, micros(t))
	}
	for _, t := range yTicks {
		fmt.Fprintf(&b, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%.3g</text>`+"\n",
			left, y(t), plotWidth-right, left-6, y(t)+4, t)
	}
	fmt.Fprintf(&b,
		`<text x="%d" y="%d" text-anchor="middle">p50 of a run</text><text transform="translate(16 %d) rotate(-90)" text-anchor="middle">%s</text>`+"\n",
		(left+plotWidth-right)/2, plotHeight-12, (top+plotHeight-base)/2, html.EscapeString(pl.Loss))
	pl.marks(&b, points, x, y)
	b.WriteString("</svg>\n")
	return []byte(b.String())
}

func (pl Plot) marks(b *strings.Builder, points []Point, x, y func(float64) float64) {
	at := func(p Point) (float64, float64) { return x(float64(p.P50Ns) / 1e3), y(p.Loss * pl.Scale) }
	front := Front(points)
	slices.SortStableFunc(front, func(i, j int) int { return int(points[i].P50Ns - points[j].P50Ns) })
	var line []string
	for _, i := range front {
		px, py := at(points[i])
		line = append(line, fmt.Sprintf("%.1f,%.1f", px, py))
	}
	fmt.Fprintf(b, `<polyline points="%s" fill="none" stroke="#2a6" stroke-dasharray="4 3"/>`+"\n", strings.Join(line, " "))
	largest := int64(1)
	for _, p := range points {
		largest = max(largest, p.SizeBytes)
	}
	for i, p := range points {
		px, py := at(p)
		fill, stroke := "#8ac", "#468"
		switch {
		case i == pl.Chosen:
			fill, stroke = "#2a6", "#163"
		case !p.Keeps:
			fill = "none"
		}
		radius := 3 + 9*math.Sqrt(float64(p.SizeBytes)/float64(largest))
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="%.1f" fill="%s" stroke="%s" fill-opacity="0.7"/><text x="%.1f" y="%.1f">%s</text>`+"\n",
			px, py, radius, fill, stroke, px+radius+3, py+4, html.EscapeString(p.Name))
	}
}

// axisMargin is by how much the axis of latency begins below the least and ends above the most.
// Its square is over 2.5, the widest step between ticks, so that even one point has a tick beside it.
const axisMargin = 1.6

// logAxis places microseconds, with ticks at 1, 2 and 5 times powers of ten.
func logAxis(points []Point) (place func(float64) float64, ticks []float64) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range points {
		v := math.Max(float64(p.P50Ns)/1e3, 0.1)
		low, high = math.Min(low, v), math.Max(high, v)
	}
	if len(points) == 0 {
		low, high = 1, 10
	}
	low, high = low/axisMargin, high*axisMargin
	place = func(v float64) float64 {
		return left + (plotWidth-left-right)*(math.Log(math.Max(v, low))-math.Log(low))/(math.Log(high)-math.Log(low))
	}
	for power := math.Floor(math.Log10(low)); power <= math.Log10(high); power++ {
		for _, m := range []float64{1, 2, 5} {
			if t := m * math.Pow(10, power); t >= low && t <= high {
				ticks = append(ticks, t)
			}
		}
	}
	return place, ticks
}

// lossAxis places losses, with four steps between the least and the most.
func lossAxis(points []Point, scale float64) (place func(float64) float64, ticks []float64) {
	low, high := math.Inf(1), math.Inf(-1)
	for _, p := range points {
		low, high = math.Min(low, p.Loss*scale), math.Max(high, p.Loss*scale)
	}
	if len(points) == 0 {
		low, high = 0, 1
	}
	if high-low < 1e-9 {
		low, high = low-0.5, high+0.5
	}
	margin := (high - low) / 10
	low, high = low-margin, high+margin
	place = func(v float64) float64 { return plotHeight - base - (plotHeight-top-base)*(v-low)/(high-low) }
	for i := range 5 {
		ticks = append(ticks, low+margin+(high-low-2*margin)*float64(i)/4)
	}
	return place, ticks
}

func micros(us float64) string {
	if us >= 1000 {
		return fmt.Sprintf("%g ms", us/1000)
	}
	return fmt.Sprintf("%g us", us)
}
