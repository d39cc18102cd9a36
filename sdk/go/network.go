package consent

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
)

// Finds out why there is no answer. The cause is an error of the system alone: a RoundTripper may quote a header.

var failures = []struct {
	detail Detail
	errnos []syscall.Errno
}{
	{DetailRefused, []syscall.Errno{syscall.ECONNREFUSED, syscall.EHOSTUNREACH, syscall.ENETUNREACH, syscall.ETIMEDOUT}},
	{DetailReset, []syscall.Errno{syscall.ECONNRESET, syscall.EPIPE, syscall.ECONNABORTED}},
}

func broken(method string, err error) *Error {
	failure := plain(method, KindNetwork)
	failure.Detail, failure.cause = reasonOf(err)
	return failure
}

func reasonOf(err error) (Detail, error) {
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "proxyconnect" {
		return DetailProxy, nil
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return DetailDNS, dns
	}
	if cause := tlsErrorOf(err); cause != nil {
		return DetailTLS, cause
	}
	for _, one := range failures {
		for _, errno := range one.errnos {
			if errors.Is(err, errno) {
				return one.detail, errno
			}
		}
	}
	for _, end := range []error{io.EOF, io.ErrUnexpectedEOF} {
		if errors.Is(err, end) {
			return DetailReset, end
		}
	}
	// net/http has no types for these.
	text := err.Error()
	switch {
	case strings.Contains(text, "tls: ") || strings.Contains(text, "HTTP response to HTTPS client"):
		return DetailTLS, nil
	case strings.Contains(text, "malformed HTTP") || strings.Contains(text, "malformed MIME"):
		return DetailProtocol, nil
	case strings.Contains(text, "server closed idle connection"):
		return DetailReset, nil
	}
	return "", nil
}

func tlsErrorOf(err error) error {
	var authority x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &authority):
		return authority
	case errors.As(err, &host):
		return host
	case errors.As(err, &invalid):
		return invalid
	case errors.As(err, &record):
		return errors.New("the peer does not speak TLS")
	}
	return nil
}
