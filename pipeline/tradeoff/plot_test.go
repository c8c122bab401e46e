package tradeoff_test

import (
	"encoding/xml"
	"slices"
	"strings"
	"testing"

	"mlpromote.dev/mlpromote/pipeline/tradeoff"
)

// drawing is what a reader sees of an SVG: circles, and texts with their places.
type drawing struct {
	Width   float64 `xml:"width,attr"`
	Height  float64 `xml:"height,attr"`
	Circles []struct {
		X      float64 `xml:"cx,attr"`
		Y      float64 `xml:"cy,attr"`
		Radius float64 `xml:"r,attr"`
		Fill   string  `xml:"fill,attr"`
	} `xml:"circle"`
	Texts []struct {
		Anchor string `xml:"text-anchor,attr"`
		Words  string `xml:",chardata"`
	} `xml:"text"`
	Front struct {
		Points string `xml:"points,attr"`
	} `xml:"polyline"`
}

func draw(t *testing.T, plot tradeoff.Plot, points ...tradeoff.Point) drawing {
	t.Helper()
	var d drawing
	if err := xml.Unmarshal(plot.SVG(points), &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Circles) != len(points) {
		t.Fatalf("%d circles are drawn, want %d", len(d.Circles), len(points))
	}
	return d
}

// ticks are the labels of an axis, in their order. Those below the drawing are centered
// above the place, like the name of the axis, which is none of them.
func (d drawing) ticks(anchor string) []string {
	var labels []string
	for _, text := range d.Texts {
		if text.Anchor == anchor && text.Words != "p50 of a run" && text.Words != "" {
			labels = append(labels, text.Words)
		}
	}
	return labels
}

func TestTicks(t *testing.T) {
	t.Parallel()
	at := func(ns int64, loss float64) tradeoff.Point { return tradeoff.Point{Keeps: true, P50Ns: ns, Loss: loss} }
	for name, c := range map[string]struct {
		scale           float64
		points          []tradeoff.Point
		latency, losses string
	}{
		"nothing measured":          {0, nil, "1 us, 2 us, 5 us, 10 us", "0, 0.25, 0.5, 0.75, 1"},
		"between two steps":         {0, []tradeoff.Point{at(1_500, 0)}, "1 us, 2 us", "-0.5, -0.25, 0, 0.25, 0.5"},
		"where steps are widest":    {0, []tradeoff.Point{at(3_200, 0)}, "2 us, 5 us", "-0.5, -0.25, 0, 0.25, 0.5"},
		"a step at the left edge":   {0, []tradeoff.Point{at(1_600, 0)}, "1 us, 2 us", "-0.5, -0.25, 0, 0.25, 0.5"},
		"a step at the right edge":  {0, []tradeoff.Point{at(625, 0)}, "0.5 us, 1 us", "-0.5, -0.25, 0, 0.25, 0.5"},
		"from micro to milli":       {0, []tradeoff.Point{at(700_000, 0), at(3_000_000, 4)}, "500 us, 1 ms, 2 ms", "0, 1, 2, 3, 4"},
		"a drop in percent":         {100, []tradeoff.Point{at(1_000, 0), at(1_000, 0.02)}, "1 us", "0, 0.5, 1, 1.5, 2"},
		"a drop as it is":           {1, []tradeoff.Point{at(1_000, 0), at(1_000, 0.02)}, "1 us", "0, 0.005, 0.01, 0.015, 0.02"},
		"no scale is scale 1":       {0, []tradeoff.Point{at(1_000, 0), at(1_000, 0.02)}, "1 us", "0, 0.005, 0.01, 0.015, 0.02"},
		"a clock too coarse for it": {0, []tradeoff.Point{at(0, 0)}, "0.1 us", "-0.5, -0.25, 0, 0.25, 0.5"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := draw(t, tradeoff.Plot{Scale: c.scale, Chosen: -1}, c.points...)
			if got := strings.Join(d.ticks("middle"), ", "); got != c.latency {
				t.Errorf("ticks of latency: got %s, want %s", got, c.latency)
			}
			if got := strings.Join(d.ticks("end"), ", "); got != c.losses {
				t.Errorf("ticks of loss: got %s, want %s", got, c.losses)
			}
		})
	}
}

// The choice stands out, what does not keep the limits is hollow, and the line joins the
// points of the front from left to right.
func TestMarks(t *testing.T) {
	t.Parallel()
	points := []tradeoff.Point{
		{Name: "fp32", Keeps: true, P50Ns: 4_000_000, P99Ns: 5_000_000, PerSecond: 250, SizeBytes: 4 << 20},
		{Name: "int8", Keeps: true, P50Ns: 1_000_000, P99Ns: 2_000_000, PerSecond: 1000, SizeBytes: 1 << 20, Loss: 0.01},
		{Name: "int4", P50Ns: 500_000, P99Ns: 600_000, PerSecond: 2000, SizeBytes: 1 << 19, Loss: 0.3},
		{Name: "bloated", Keeps: true, P50Ns: 9_000_000, P99Ns: 9_000_000, PerSecond: 100, SizeBytes: 8 << 20, Loss: 0.02},
	}
	const full, small, smallest, bloated = 0, 1, 2, 3
	d := draw(t, tradeoff.Plot{Chosen: small}, points...)

	if chosen, other := d.Circles[small].Fill, d.Circles[full].Fill; chosen == other || chosen == "none" || other == "none" {
		t.Errorf("the chosen point has the fill %s and another one %s, want two colors", chosen, other)
	}
	if got := d.Circles[bloated].Fill; got != d.Circles[full].Fill {
		t.Errorf("a point that is beaten has the fill %s, want that of one that is not, %s", got, d.Circles[full].Fill)
	}
	if got := d.Circles[smallest].Fill; got != "none" {
		t.Errorf("a point outside the limits has the fill %s, want none", got)
	}
	if got := draw(t, tradeoff.Plot{Chosen: -1}, points...).Circles[small].Fill; got != d.Circles[full].Fill {
		t.Errorf("without a choice a point has the fill %s, want %s", got, d.Circles[full].Fill)
	}
	for _, pair := range [][2]int{{smallest, small}, {small, full}, {full, bloated}} {
		left, right := d.Circles[pair[0]], d.Circles[pair[1]]
		if left.X >= right.X {
			t.Errorf("%s is drawn at %.1f, want it left of %s at %.1f", points[pair[0]].Name, left.X, points[pair[1]].Name, right.X)
		}
		if left.Radius >= right.Radius {
			t.Errorf("%s has the radius %.1f, want less than that of %s, %.1f", points[pair[0]].Name, left.Radius, points[pair[1]].Name, right.Radius)
		}
	}
	for i, c := range d.Circles {
		if c.X < 0 || c.X > d.Width || c.Y < 0 || c.Y > d.Height {
			t.Errorf("%s is drawn at %.1f %.1f, outside the drawing of %.0f x %.0f", points[i].Name, c.X, c.Y, d.Width, d.Height)
		}
	}
	if losses := []float64{d.Circles[full].Y, d.Circles[small].Y, d.Circles[bloated].Y,
		d.Circles[smallest].Y}; !slices.IsSortedFunc(losses, func(a, b float64) int { return int(b - a) }) {
		t.Errorf("heights by growing loss are %v, want each above the one before", losses)
	}
	if joined := len(strings.Fields(d.Front.Points)); joined != 2 {
		t.Errorf("the line joins %d points (%s), want the 2 of the front", joined, d.Front.Points)
	}
	first, _, _ := strings.Cut(d.Front.Points, ",")
	if second, _, _ := strings.Cut(strings.Fields(d.Front.Points)[1], ","); len(first) > len(second) || len(first) == len(second) && first >= second {
		t.Errorf("the line begins at %s and goes to %s, want from left to right", first, second)
	}
}
