package parquet

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
)

// Codecs.
const (
	codecNone   = 0
	codecSnappy = 1
	codecGzip   = 2
	codecZstd   = 6
)

// decompressor decompresses pages, of which each says its size.
type decompressor struct {
	zstd *zstd.Decoder
	left budget // bytes that pages may still have
}

func newDecompressor(limit int64) (*decompressor, error) {
	z, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxPage))
	return &decompressor{zstd: z, left: budget(limit)}, err
}

func (d *decompressor) close() { d.zstd.Close() }

// page decompresses a page to as many bytes as its header says.
func (d *decompressor) page(codec int64, data []byte, size int64) ([]byte, error) {
	if size < 0 || size > maxPage {
		return nil, fmt.Errorf("a page has %d bytes: want at most %d", size, maxPage)
	}
	if err := d.left.take(size); err != nil {
		return nil, err
	}
	out, err := d.decompress(codec, data, size)
	if err == nil && int64(len(out)) != size {
		err = errors.New("its size differs from the header's")
	}
	if err != nil {
		return nil, fmt.Errorf("a page: %w", err)
	}
	return out, nil
}

func (d *decompressor) decompress(codec int64, data []byte, size int64) ([]byte, error) {
	switch codec {
	case codecNone:
		return data, nil
	case codecSnappy:
		if n, err := snappy.DecodedLen(data); err != nil || int64(n) != size {
			return nil, errors.New("its size differs from the header's")
		}
		return snappy.Decode(nil, data)
	case codecGzip:
		z, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return nil, err
		}
		return io.ReadAll(io.LimitReader(z, size+1))
	case codecZstd:
		return d.zstd.DecodeAll(data, nil)
	}
	return nil, fmt.Errorf("its codec %d is not read: write the file with snappy, gzip, zstd or no compression", codec)
}
