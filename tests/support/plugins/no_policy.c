/* A shared object that holds no policy. */
extern int something_else;
int something_else = 1;
