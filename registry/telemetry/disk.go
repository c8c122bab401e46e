package telemetry

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// disk measures the file system of the content when metrics are collected.
type disk struct {
	free, reserved *prometheus.Desc
	measure        atomic.Pointer[func() (free, reserved int64, err error)]
}

func newDisk() *disk {
	return &disk{
		free:     prometheus.NewDesc("mlpromote_disk_free_bytes", "Bytes that are free for the content.", nil, nil),
		reserved: prometheus.NewDesc("mlpromote_disk_reserve_bytes", "Bytes that uploads leave free.", nil, nil),
	}
}

// Describe sends the descriptions of both metrics.
func (d *disk) Describe(to chan<- *prometheus.Desc) {
	to <- d.free
	to <- d.reserved
}

// Collect measures. Without a measurement there are no values.
func (d *disk) Collect(to chan<- prometheus.Metric) {
	measure := d.measure.Load()
	if measure == nil {
		return
	}
	free, reserved, err := (*measure)()
	if err != nil {
		return
	}
	to <- prometheus.MustNewConstMetric(d.free, prometheus.GaugeValue, float64(free))
	to <- prometheus.MustNewConstMetric(d.reserved, prometheus.GaugeValue, float64(reserved))
}
