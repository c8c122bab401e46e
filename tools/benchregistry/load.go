package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

// load asks for a URL on many connections, each request after the answer to the one
// before, and gives answers per second, and how many came in all, those to
// warm up included. Every answer must be a 200 of size bytes; a negative
// size means any.
//
// It speaks HTTP/1.1 by hand. The server has the same processors, and net/http's client
// would take more of them than most servers here.
func (s *server) load(ctx context.Context, path, accept string, size int64, connections int, d time.Duration) (rate float64, all int64, err error) {
	target, err := url.Parse(s.url)
	if err != nil {
		return 0, 0, err
	}
	request := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\nAccept: %s\r\n", path, target.Host, accept)
	if s.token != "" {
		request += "Authorization: Bearer " + s.token + "\r\n"
	}
	request += "\r\n"
	ctx, cancel := context.WithTimeout(ctx, d+startTimeout)
	defer cancel()
	const warm = 100 * time.Millisecond
	from := time.Now().Add(warm)
	until := from.Add(d)
	var answers, others atomic.Int64
	err = atOnce(connections, func(int) error {
		conn, err := s.dial(ctx, target)
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }() // there is no more to say on it
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		defer stop()
		r := bufio.NewReader(conn)
		for {
			if _, err := io.WriteString(conn, request); err != nil {
				return err
			}
			if err := readAnswer(r, size); err != nil {
				return fmt.Errorf("GET %s%s: %w", s.url, path, err)
			}
			switch now := time.Now(); {
			case now.After(until):
				others.Add(1) // too late to count, as are those that were too early
				return nil
			case now.After(from):
				answers.Add(1)
			default:
				others.Add(1)
			}
		}
	})
	return float64(answers.Load()) / d.Seconds(), answers.Load() + others.Load(), err
}

func (s *server) dial(ctx context.Context, target *url.URL) (net.Conn, error) {
	if target.Scheme != "https" {
		return new(net.Dialer).DialContext(ctx, "tcp", target.Host)
	}
	transport, ok := s.client.Transport.(*http.Transport)
	if !ok {
		return nil, errors.New("the client has no transport to take its authorities from")
	}
	return (&tls.Dialer{Config: transport.TLSClientConfig}).DialContext(ctx, "tcp", target.Host)
}

// readAnswer reads one answer, headers without regard to all but the length.
func readAnswer(r *bufio.Reader, size int64) error {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
		return fmt.Errorf("got %q, want 200", line)
	}
	length := int64(-1)
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		if len(line) <= 2 {
			break
		}
		const name = "content-length:"
		if len(line) > len(name) && strings.EqualFold(string(line[:len(name)]), name) {
			if length, err = strconv.ParseInt(string(bytes.TrimSpace(line[len(name):])), 10, 64); err != nil {
				return err
			}
		}
	}
	if length < 0 || size >= 0 && length != size {
		return fmt.Errorf("content-length is %d, want %d", length, size)
	}
	_, err = r.Discard(int(length))
	return err
}
