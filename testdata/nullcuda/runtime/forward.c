// The calls of forward.def, one body each.
#include "runtime.h"

#define FORWARD(exported, name, enter, parameters, arguments) \
	RT_API exported parameters                            \
	{                                                     \
		int error = enter();                          \
		if (error == RT_OK)                           \
			error = rt_calls->name arguments;     \
		return rt_done(error);                        \
	}

#define RT_FORWARD_TWIN(name, driver, version, thread_version, parameters, arguments) \
	FORWARD(RT_PTSZ(name), name, rt_enter, parameters, arguments)

#ifdef RT_THREAD_STREAM
#define RT_FORWARD(name, driver, version, parameters, arguments)
#define RT_FORWARD_INIT(name, driver, version, parameters, arguments)
#else
#define RT_FORWARD(name, driver, version, parameters, arguments) FORWARD(name, name, rt_enter, parameters, arguments)
#define RT_FORWARD_INIT(name, driver, version, parameters, arguments) \
	FORWARD(name, name, rt_driver, parameters, arguments)
#endif

#include "forward.def"
