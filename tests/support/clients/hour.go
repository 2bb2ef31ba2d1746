// A Go program of an hour: goroutines that read a GPU, a ticker that sets it, a child, a socket, a signal.
package main

/*
#cgo LDFLAGS: -ldl
#include <dlfcn.h>
static void *nvml;
static int start(void) { return !(nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW)) || ((int (*)(void))dlsym(nvml, "nvmlInit_v2"))(); }
static int by_index(unsigned i, void **d) { return ((int (*)(unsigned, void **))dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2"))(i, d); }
static int set(void *d, unsigned mw) { return ((int (*)(void *, unsigned))dlsym(nvml, "nvmlDeviceSetPowerManagementLimit"))(d, mw); }
static int power(void *d, unsigned *mw) { return ((int (*)(void *, unsigned *))dlsym(nvml, "nvmlDeviceGetPowerUsage"))(d, mw); }
*/
import "C"

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

var gpu unsafe.Pointer
var began = time.Now()

func since() string { return fmt.Sprintf("%.3f s", time.Since(began).Seconds()) }

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func read() {
	reads := make(chan uint, 16)
	var all sync.WaitGroup
	for w := 0; w < 3; w++ {
		all.Add(1)
		go func(w int) {
			defer all.Done()
			for i := 0; i < 20; i++ {
				time.Sleep(time.Duration(50+10*w) * time.Millisecond)
				var mw C.uint
				C.power(gpu, &mw)
				reads <- uint(mw)
			}
		}(w)
	}
	go func() { all.Wait(); close(reads) }()
	var sum, n uint
	for r := range reads {
		sum, n = sum*31+r, n+1
	}
	fmt.Println("readings", n, sum, since())
}

func main() {
	if C.start() != 0 || C.by_index(0, &gpu) != 0 {
		os.Exit(1)
	}
	read()
	c, cancel := context.WithTimeout(context.Background(), 1500*time.Millisecond)
	<-c.Done()
	cancel()
	fmt.Println("context", since())

	out, err := exec.Command("sh", "-c", "sleep 2; date +%s").Output()
	check(err)
	fmt.Printf("child %q %s\n", out, since())

	l, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	go func() {
		s, err := l.Accept()
		check(err)
		time.Sleep(300 * time.Millisecond)
		s.Write([]byte("hello"))
		s.Close()
	}()
	s, err := net.Dial("tcp", l.Addr().String())
	check(err)
	b := make([]byte, 16)
	n, err := s.Read(b)
	check(err)
	fmt.Println("socket", string(b[:n]), since())

	heard := make(chan os.Signal, 1)
	signal.Notify(heard, syscall.SIGUSR1)
	check(syscall.Kill(os.Getpid(), syscall.SIGUSR1))
	fmt.Println("signal", <-heard)

	tick := time.NewTicker(time.Second)
	for i := 0; time.Since(began) < time.Hour; i++ {
		<-tick.C
		if C.set(gpu, C.uint(200000+i%2*50000)) != 0 {
			os.Exit(2)
		}
	}
	fmt.Println("end", since(), time.Now().UTC().Format(time.RFC3339))
}
