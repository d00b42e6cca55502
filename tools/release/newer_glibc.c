/* What libstdc++ 12 asks for of a glibc newer than 2.28, for the wheels, which bring it along. */
#include <pthread.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

/* glibc 2.32: whether the process has one thread, so that counts need not be atomic. */
char __libc_single_threaded = 0;

/* glibc 2.36: random bits. */
uint32_t arc4random(void) {
  uint32_t bits;
  while (getentropy(&bits, sizeof bits) != 0) {
  }
  return bits;
}

/* glibc 2.30: waits until a time of another clock than the condition's, CLOCK_REALTIME. If that is set
 * meanwhile, the wait ends at another time; libstdc++ looks at the clock that was meant. */
int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const struct timespec* until) {
  const long second = 1000000000;
  struct timespec now;
  struct timespec end;
  clock_gettime(clock, &now);
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += until->tv_sec - now.tv_sec;
  end.tv_nsec += until->tv_nsec - now.tv_nsec;
  if (end.tv_nsec < 0) {
    end.tv_sec -= 1;
    end.tv_nsec += second;
  } else if (end.tv_nsec >= second) {
    end.tv_sec += 1;
    end.tv_nsec -= second;
  }
  return pthread_cond_timedwait(condition, mutex, &end);
}
