#include "python/src/held_calls.h"

#include <pthread.h>
#include <time.h>

/* What pthread_exit calls before it comes to the frames behind. */
static void HoldForever(void* unused) {
  (void)unused;
  const struct timespec hour = {3600, 0};
  while (1) nanosleep(&hour, NULL);
}

void HeldRestoreThread(PyThreadState* state) {
  pthread_cleanup_push(HoldForever, NULL);
  PyEval_RestoreThread(state);
  pthread_cleanup_pop(0);
}

PyGILState_STATE HeldEnsureGil(void) {
  PyGILState_STATE state;
  pthread_cleanup_push(HoldForever, NULL);
  state = PyGILState_Ensure();
  pthread_cleanup_pop(0);
  return state;
}

PyObject* HeldCallObject(PyObject* function, PyObject* arguments) {
  PyObject* result;
  pthread_cleanup_push(HoldForever, NULL);
  result = PyObject_CallObject(function, arguments);
  pthread_cleanup_pop(0);
  return result;
}

int HeldCheckSignals(void) {
  int result;
  pthread_cleanup_push(HoldForever, NULL);
  result = PyErr_CheckSignals();
  pthread_cleanup_pop(0);
  return result;
}
