/* Calls of Python that may ask for the GIL: where the interpreter ends meanwhile, they never
 * return.
 *
 * Before Python 3.14 a thread that asks for the GIL while the interpreter ends is ended by
 * pthread_exit, which unwinds its stack. Frames of nanobind, which are noexcept, would abort the
 * process, and the stack of a call that other threads work for would be gone. Here such a thread
 * stops and keeps its stack, as in Python 3.14; the process ends without it. Of C, as this takes no
 * unwinder: that of pthread_exit may be another one than that of our C++ code.
 */
#ifndef RESHARD_PYTHON_HELD_CALLS_H_
#define RESHARD_PYTHON_HELD_CALLS_H_

#include <Python.h>

#ifdef __cplusplus
extern "C" {
#endif

void HeldRestoreThread(PyThreadState* state);
PyGILState_STATE HeldEnsureGil(void);
PyObject* HeldCallObject(PyObject* function, PyObject* arguments);
int HeldCheckSignals(void);

#ifdef __cplusplus
}
#endif

#endif /* RESHARD_PYTHON_HELD_CALLS_H_ */
